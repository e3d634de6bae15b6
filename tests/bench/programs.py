"""What the commands are measured against, each a process of its own: `python programs.py NAME ARGUMENT...`.

Imports stand in the functions: the start-up of a program is part of its cost.
"""

import os
import sys

BLOCK = 1 << 20
KEY = b'"cum_len":'
# longer than the key, its number and the comma behind it
REACH = 64


def captures(directory: str, ending: str = ".tokens.jsonl") -> list[str]:
    """The record files of a directory."""
    return sorted(entry.path for entry in os.scandir(directory) if entry.name.endswith(ending))


def nothing() -> None:
    """Start and end."""


def lower_bound(directory: str) -> None:
    """Read all bytes, find one key in them, hash 8 bytes for each id of each call's prompt and generation."""
    import hashlib

    ids = memoryview(bytes(8 * BLOCK))
    buffer = bytearray(REACH + BLOCK)
    window = memoryview(buffer)[REACH:]
    for path in captures(directory):
        with open(path, "rb", buffering=0) as file:
            start = REACH
            while count := file.readinto(window):
                end = REACH + count
                # a key too close to the end is found again before the next block
                limit = end if count < BLOCK else end - REACH
                at = buffer.find(KEY, start, limit)
                while at >= 0:
                    number = int(buffer[at + len(KEY) : buffer.index(b",", at)])
                    hashlib.sha256(ids[: 8 * number]).digest()
                    at = buffer.find(KEY, at + REACH, limit)
                buffer[:REACH] = buffer[end - REACH : end]
                start = 0


def parse_raw(directory: str) -> None:
    """Decode every line of the raw calls."""
    parse_lines(directory, ".capture.jsonl")


def parse_lines(directory: str, ending: str = ".tokens.jsonl") -> None:
    """Decode every line."""
    import orjson

    for path in captures(directory, ending):
        with open(path, "rb", buffering=BLOCK) as file:
            for line in file:
                orjson.loads(line)


def imports(*modules: str) -> None:
    """Import modules, in this order."""
    from contextlib import suppress
    from importlib import import_module

    for module in modules:
        # some are only tried by a library that does without them, too
        with suppress(ImportError):
            import_module(module)


def look(directory: str) -> None:
    """Look at every file of a directory."""
    for entry in os.scandir(directory):
        os.lstat(entry.path)


def reverse_lines(source: str, target: str) -> None:
    """Copy the record files of a directory with their last line first."""
    from pathlib import Path

    for path in map(Path, captures(source)):
        lines = path.read_bytes().splitlines(keepends=True)
        (Path(target) / path.name).write_bytes(b"".join(reversed(lines)))


if __name__ == "__main__":
    programs = {f.__name__: f for f in (nothing, lower_bound, parse_lines, parse_raw, imports, look, reverse_lines)}
    programs[sys.argv[1]](*sys.argv[2:])
