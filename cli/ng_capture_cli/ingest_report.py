"""What a run of `ng-capture ingest` prints: a line for each fault, or its rollouts as data, and what it did."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ng_capture.ingest.ingest import IngestedCall, IngestedRollout, Unwritten
from ng_capture.records.defects import Defect
from ng_capture.verdicts.findings import Finding, find
from ng_capture_cli.output import StandardOutput
from ng_capture_cli.summary import counted, finding_line
from ng_capture_cli.terminal import Colors, tell

SCHEMA = "ng-capture.ingest/1"
_SHOWN = 3


class ToldRollout(msgspec.Struct, frozen=True):
    """A rollout as it is printed; without an id what was wrong with the sources, and belongs to no rollout."""

    rollout_id: str | None
    calls: tuple[IngestedCall, ...]
    findings: tuple[Finding, ...]


class Summary(msgspec.Struct, frozen=True):
    """Counts of a run."""

    rollouts: int
    calls: int
    added: int
    there: int
    left_out: int
    refused: int
    reasons: dict[str, int]


class Report:
    """Prints rollouts as they come, and counts them; `defects` are those of the sources.

    `unwritten` are the rollouts that could not be written, once all were printed.
    """

    def __init__(self, defects: Iterable[Defect]) -> None:
        self._output = StandardOutput()
        self._of_sources = ToldRollout(None, (), tuple(map(find, defects)))
        self._rollouts = 0
        self._actions: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self.has_errors = False
        self.unwritten: list[Unwritten] = []
        self._count(self._of_sources)

    def told(self, rollouts: Iterable[IngestedRollout | Unwritten]) -> Iterator[ToldRollout]:
        """The rollouts with their findings, counted."""
        for rollout in rollouts:
            if isinstance(rollout, Unwritten):
                self.unwritten.append(rollout)
                continue
            told = ToldRollout(rollout.rollout_id, rollout.calls, tuple(map(find, rollout.defects)))
            self._rollouts += 1
            self._count(told)
            yield told

    def _count(self, rollout: ToldRollout) -> None:
        self._actions.update(call.action for call in rollout.calls)
        self._reasons.update(finding.reason for finding in rollout.findings)
        # a retired rollout was handed off: that is counted apart, as everywhere
        errors = (finding.reason for finding in rollout.findings if finding.severity == "error")
        self.has_errors |= any(reason != "retired" for reason in errors)

    @property
    def summary(self) -> Summary:
        return Summary(
            rollouts=self._rollouts,
            calls=sum(self._actions.values()),
            added=self._actions["added"],
            there=self._actions["there"],
            left_out=self._actions["left_out"],
            refused=self._actions["refused"],
            reasons=dict(self._reasons.most_common()),
        )

    @property
    def lost(self) -> bool:
        """True where what was printed found no room: all is done, and not all is told."""
        return self._output.lost

    def print_lines(self, rollouts: Iterable[ToldRollout], verbose: bool, colors: Colors) -> None:
        """One line for each fault."""
        for rollout in self._all(rollouts):
            for finding in rollout.findings:
                if verbose or finding.severity != "info":
                    line = finding_line(rollout.rollout_id or "ingest", finding, colors)
                    self._output.write(line.encode() + b"\n")
        self._output.end()

    def print_objects(self, rollouts: Iterable[ToldRollout]) -> None:
        """One object a rollout; one more for the sources where something was wrong with them."""
        for rollout in self._all(rollouts):
            self._output.write(msgspec.json.encode(rollout) + b"\n")
        self._output.end()

    def print_document(self, rollouts: Iterable[ToldRollout]) -> None:
        """One document, written as the rollouts come: the summary stands last."""
        write, encode = self._output.write, msgspec.json.encode
        findings = encode(self._of_sources.findings)
        write(b'{"schema":%b,"findings":%b,"rollouts":[' % (encode(SCHEMA), findings))
        for number, rollout in enumerate(rollouts):
            write((b",\n" if number else b"\n") + encode(rollout))
        write(b'\n],"summary":%b}\n' % encode(self.summary))
        self._output.end()

    def _all(self, rollouts: Iterable[ToldRollout]) -> Iterator[ToldRollout]:
        if self._of_sources.findings:
            yield self._of_sources
        yield from rollouts

    def tell(self, to: Path, passed_over: Iterable[str]) -> None:
        """The last lines of a run."""
        done, over = self.summary, list(passed_over)
        if over:
            more = ", ..." if len(over) > _SHOWN else ""
            tell(f"{counted(len(over), 'file')} passed over, no log that is known: {', '.join(over[:_SHOWN])}{more}")
        if not done.rollouts:
            tell("nothing was written")
            if done.reasons.get("bad_rollout_id"):
                tell("hint: --rollout-from FIELD says which field names a call's rollout, --rollout-id ID names all")
            return
        parts = [f"{done.added:,} added", f"{done.there:,} there already", f"{done.left_out:,} without a record"]
        parts += [f"{done.refused:,} refused"] if done.refused else []
        tell(f"{counted(done.rollouts, 'rollout')}, {counted(done.calls, 'call')}: {', '.join(parts)}.")
        if done.reasons:
            tell("found: " + ", ".join(f"{reason} {count:,}" for reason, count in done.reasons.items()))
        tell(f"hint: ng-capture verify {to}")
