"""Which reader a log needs: by its content, by the name of a capture file, or by the name the user gives."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import LOCK_NAME, parse_name, shown
from ng_capture.ingest.sources.agent_lightning import AGENT_LIGHTNING
from ng_capture.ingest.sources.gym_capture import GYM_CAPTURE
from ng_capture.ingest.sources.gym_tokens import GYM_TOKENS
from ng_capture.ingest.sources.har import HAR
from ng_capture.ingest.sources.harbor import HARBOR
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading
from ng_capture.ingest.sources.litellm import LITELLM
from ng_capture.ingest.sources.openai_batch import OPENAI_BATCH
from ng_capture.ingest.sources.opening import STANDARD_INPUT, SourceFile
from ng_capture.ingest.sources.pairs import PAIRS
from ng_capture.ingest.sources.text_only import TextOnly, text_only
from ng_capture.ingest.sources.tinker import TINKER
from ng_capture.ingest.sources.verifiers import VERIFIERS
from ng_capture.natural_order import natural_key
from ng_capture.records.defects import Defect

# the first that recognises a file reads it: the particular before the general
FORMATS = (
    GYM_TOKENS,
    GYM_CAPTURE,
    OPENAI_BATCH,
    HAR,
    LITELLM,
    TINKER,
    VERIFIERS,
    HARBOR,
    AGENT_LIGHTNING,
    PAIRS,
)
FORMAT_NAMES = tuple(format_.name for format_ in FORMATS)


class Log(msgspec.Struct, frozen=True):
    """Files of one format, to be read together."""

    format: LogFormat
    files: tuple[SourceFile, ...]

    def read(self) -> Iterator[Reading]:
        """Every call of the files and every fault between them; raises SurroundingsError for an unreadable file."""
        return self.format.read(self.files)


class Recognition(msgspec.Struct, frozen=True):
    """What the sources are: logs to read, text-only logs in folders (`refused`), other files of folders by name."""

    logs: tuple[Log, ...]
    refused: tuple[Defect, ...] = ()
    passed_over: tuple[str, ...] = ()


def recognise(
    sources: Sequence[str], name: str | None = None, rollout_from: str | None = None, *, live: bool = False
) -> Recognition:
    """The readers for files, folders and `-`; `name` is the format that the user says they have.

    `rollout_from` is the field of a line or entry that the user says names its rollout (`metadata.run`, `turns.0.id`).
    `live` leaves a last line that is not whole yet for the next time. In a folder, what no reader knows is passed over.
    An empty file is one that nothing was logged in yet. Raises UsageError for a source that is named and not known, for
    a log of text alone (`text_only_source`), and where nothing is left to read; SurroundingsError for what cannot be
    opened.
    """
    given = None if name is None else _named(name)
    files: dict[str, list[SourceFile]] = {}
    refused: list[Defect] = []
    passed_over: list[str] = []
    nothing_yet = False
    for source in sources:
        folder = source != STANDARD_INPUT and Path(source).is_dir()
        for path in _walk(source) if folder else [source]:
            file = SourceFile(path, rollout_from, live=live)
            head = file.head() if given is None else Head(file.file_name)
            known = given or next((each for each in FORMATS if each.recognises(head)), None)
            text = None if known else text_only(head)
            if known:
                files.setdefault(known.name, []).append(file)
            elif not folder and file.is_empty:
                nothing_yet = True
            elif not folder:
                raise _unknown(file, text)
            elif text:
                refused.append(Defect(reason="text_only_source", file=file.name, detail=f"{text.title}: {text.why}"))
            elif parse_name(file.file_name) is None and not file.file_name.endswith(f".{LOCK_NAME}"):
                passed_over.append(file.name)
    if not files and not refused and not nothing_yet:
        raise UsageError(f"{', '.join(map(shown, sources))}: no log that can be read", hint=_formats_hint())
    logs = [Log(each, tuple(files[each.name])) for each in FORMATS if each.name in files]
    return Recognition(tuple(logs), tuple(refused), tuple(passed_over))


def _named(name: str) -> LogFormat:
    for format_ in FORMATS:
        if format_.name == name:
            return format_
    raise UsageError(f"{name}: no such log format", hint=f"one of {', '.join(FORMAT_NAMES)}")


def _unknown(file: SourceFile, text: TextOnly | None) -> UsageError:
    if text is not None:
        return UsageError(f"{file.name}: {text.title} (text_only_source): {text.why}", hint=text.instead)
    return UsageError(f"{file.name}: no log that is known", hint=_formats_hint())


def _formats_hint() -> str:
    return f"say which it is: --from {', '.join(FORMAT_NAMES)}"


def _walk(folder: str) -> Iterator[str]:
    """The regular files of a folder and of the folders in it, in natural order.

    Links to folders are not followed; hidden folders are somebody's own, the trash of a capture directory among them.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: natural_key(entry.name))
    except OSError as error:
        raise SurroundingsError(f"{shown(folder)}: cannot be listed: {error.strerror}") from error
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith("."):
                yield from _walk(entry.path)
        elif _is_file(entry):
            yield entry.path


def _is_file(entry: "os.DirEntry[str]") -> bool:
    """False for links that lead nowhere or to themselves."""
    try:
        return entry.is_file()
    except OSError:
        return False
