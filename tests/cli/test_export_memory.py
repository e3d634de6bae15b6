"""The memory of `rebuild --to` follows the largest rollout and one piece of a table, not the run (promise 10)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import COMMAND
from tests.support.forge import Forge, write_rows

TOKENS = 5_000
SOME, MANY = 240, 1_000
"""Rollouts of more than two pieces of a table, and of ten; what lies between takes 47 MiB at least."""
MOST = 24 * 1024


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("long") / "store"
    rows = []
    for number in range(MANY):
        forge = Forge(f"{number:03}-0")
        call = forge.root(range(number, number + TOKENS), [7, 8, 9], id=f"{number}")
        forge.write(directory, state=False, intents=False)
        rows.append({**forge.row(call, reward=0.5), "_ng_task_index": number // 8})
    write_rows(directory.parent / "rows.jsonl", rows)
    return directory


_MEASURED = """
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""In a small process of its own: the peak of a child is never below what its parent takes."""


def peak(store: Path, rollouts: int, out: Path, *options: str) -> int:
    """KiB that the command took at most."""
    chosen = [str(path) for path in sorted(store.iterdir())[:rollouts]]
    (out.parent / "paths").write_text("\n".join(chosen))
    words = ["rebuild", "--files-from", out.parent / "paths", "--rollouts", store.parent / "rows.jsonl", "-o", out]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, COMMAND, *map(str, words), "-q", *options], capture_output=True, check=True
    )
    assert out.exists()
    return int(done.stdout)


@pytest.mark.parametrize(
    ("name", "ending", "options"),
    [
        ("rows", "jsonl", ()),
        ("rows", "parquet", ()),
        ("rows", "arrow", ()),
        ("verl", "parquet", ("--advantage", "grpo")),
        ("llamafactory", "directory", ()),
    ],
)
def test_memory_does_not_grow_with_the_run(
    store: Path, tmp_path: Path, name: str, ending: str, options: tuple[str, ...]
) -> None:
    some = peak(store, SOME, tmp_path / f"some.{ending}", "--to", name, *options)
    many = peak(store, MANY, tmp_path / f"many.{ending}", "--to", name, *options)
    assert many - some < MOST
