"""What a conversion tells: faults as they come, losses at the end, all of it as JSON where that is asked for."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ng_capture.contracts.conversion import Converted
from ng_capture.contracts.interface import Profile
from ng_capture.contracts.losses import LOSS_CODES, SEVERITIES, Loss, LossSeverity, lost
from ng_capture.contracts.rules import Fault, has_errors
from ng_capture.errors import NgCaptureError
from ng_capture_cli import exits
from ng_capture_cli.output import open_sink
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import tell, tell_error

SCHEMA = "ng-capture.losses/1"
_NAMED_BY = {
    "agent_name_unknown": "--agent-name NAME says who it was",
    "agent_version_unknown": "--agent-version V says of what version",
}


class ToldLoss(msgspec.Struct, frozen=True, omit_defaults=True):
    """A loss as it is reported."""

    code: str
    severity: LossSeverity
    path: str
    count: int
    detail: str | None = None


class ToldDocument(msgspec.Struct, frozen=True):
    """A document as it is reported; `output` is null where it was refused."""

    source: str
    place: str
    contract: str
    output: str | None
    losses: tuple[ToldLoss, ...]
    faults: tuple[Fault, ...]


class LossReport(msgspec.Struct, frozen=True):
    """The whole report: `to` the contract written, `losses` the counts by code over all documents."""

    schema: str
    to: str
    profile: str
    losses: dict[str, int]
    documents: tuple[ToldDocument, ...]


class Report:
    """Counts what became of each document; each by itself is kept where a file asks for it."""

    def __init__(self, to: str, profile: Profile, path: Path | None) -> None:
        self._to = to
        self._profile = profile
        self._path = path
        self._documents: list[ToldDocument] = []
        self._counts: Counter[str] = Counter()
        self._in: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._written = self._refused = 0
        self._warnings = 0
        self._faulty = False
        self._failed = False

    def add(self, contract: str, converted: Converted, output: str | None) -> None:
        """One document; its errors are told at once, its warnings counted."""
        for fault in converted.faults:
            if fault.severity == "error":
                hint = "--from NAME says what it is" if contract == "unknown" else None
                tell_error(fault_line(converted.source, fault, converted.place), hint)
        self._warnings += sum(fault.severity == "warning" for fault in converted.faults)
        if converted.written is None and not has_errors(converted.faults):
            codes = list(dict.fromkeys(loss.code for loss in lost(converted.losses)))
            hints = [hint for code, hint in _NAMED_BY.items() if code in codes]
            message = f"{_place(converted)}: refused, it would lose something: {', '.join(codes)}"
            tell_error(message, "; ".join([*hints, "without --strict it is written"]))
        self._faulty |= converted.written is None or has_errors(converted.faults)
        self._written += converted.written is not None
        self._refused += converted.written is None
        for loss in converted.losses:
            self._counts[loss.code] += loss.count
            self._first.setdefault(loss.code, f"{_place(converted)}{f' {loss.path}' if loss.path else ''}")
        self._in.update({loss.code for loss in converted.losses})
        if self._path is not None:
            losses = tuple(map(_told, converted.losses))
            document = ToldDocument(converted.source, converted.place, contract, output, losses, converted.faults)
            self._documents.append(document)

    def fail(self, error: NgCaptureError) -> None:
        """A source that could not be read, or an output that could not be written; the others go on."""
        tell_error(error.message, error.hint)
        self._failed = True

    @property
    def exit_code(self) -> int:
        if self._failed:
            return exits.SURROUNDINGS
        return exits.FINDINGS if self._faulty or not self._written else exits.DONE

    def write(self) -> None:
        """The report as JSON, where that is asked for; raises SurroundingsError."""
        if self._path is None:
            return
        report = LossReport(SCHEMA, self._to, self._profile, dict(sorted(self._counts.items())), tuple(self._documents))
        with open_sink(str(self._path)) as sink:
            sink.write(msgspec.json.format(msgspec.json.encode(report)) + b"\n")

    def tell(self, output: str, passed_over: Sequence[str]) -> None:
        """How many documents, and what they lost, the worst first."""
        tell_passed_over(passed_over)
        if not self._written and not self._refused and not self._failed:
            tell("no document was converted: the sources hold none, or --include and --exclude leave none")
        to = "" if output == "-" or not self._written else f" to {output}"
        tell(f"{counted(self._written, 'document')} written{to}, {self._refused:,} refused.")
        if self._warnings:
            tell(f"{counted(self._warnings, 'warning')} about the sources: ng-capture validate tells them")
        for severity in SEVERITIES:
            for code, count in self._counts.most_common():
                if LOSS_CODES[code].severity == severity:
                    times = f"{count:,} in {counted(self._in[code], 'document')}"
                    tell(f"  {severity:<11} {code:<30} {times}, first {self._first[code]}")


def fault_line(source: str, fault: Fault, place: str = "") -> str:
    """`file:line: step 2: rule: message (path)`."""
    at = source if fault.file in (None, source) else _file(source, fault.file)
    at += f":{fault.line}" if fault.line is not None else ""
    at += _at(place) if place and fault.line is None else ""
    at += f": step {fault.step}" if fault.step is not None else ""
    return f"{at}: {fault.rule}: {fault.message}{f' ({fault.path})' if fault.path else ''}"


def _file(source: str, name: str) -> str:
    """A file of a source that is a folder, or that lies beside the others of its rollout."""
    return str((Path(source) if Path(source).is_dir() else Path(source).parent) / name)


def tell_passed_over(files: Sequence[str]) -> None:
    """The files of folders that are of no contract; the first of them by name."""
    if files:
        tell(f"{counted(len(files), 'file')} that nothing is known of: {', '.join(files[:3])}")


def _place(converted: Converted) -> str:
    """The source with the line, or the rollout, in it."""
    return converted.source + (_at(converted.place) if converted.place else "")


def _at(place: str) -> str:
    return f":{place.removeprefix('line ')}"


def _told(loss: Loss) -> ToldLoss:
    return ToldLoss(loss.code, loss.severity, loss.path, loss.count, loss.detail)
