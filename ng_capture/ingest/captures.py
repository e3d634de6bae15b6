"""Logs as captures and no more: the raw calls of each rollout as lines of `.capture.jsonl`, no record made of them."""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from ng_capture.ingest.candidate import begun, candidate_of_call
from ng_capture.ingest.capture_line import capture_line
from ng_capture.ingest.normalise import normalise
from ng_capture.ingest.raw import RawExchange, RolloutClaim
from ng_capture.ingest.rollout import RawLine, named_call
from ng_capture.ingest.sources.interface import Reading, TokenLine
from ng_capture.ingest.sources.recognise import Recognition
from ng_capture.ingest.sources.rollouts import resolve_rollout
from ng_capture.ingest.spool import Spool
from ng_capture.natural_order import natural_key
from ng_capture.records.defects import Defect
from ng_capture.records.fingerprint import Beginnings


class LogCapture(msgspec.Struct, frozen=True):
    """The calls of one rollout as lines without line breaks, in the order in which they were made.

    `problems` counts what keeps calls from being trained (reasons.md): a log of texts has `call_without_tokens`.
    """

    rollout_id: str
    lines: tuple[bytes, ...]
    problems: Mapping[str, int]


class LogCaptures:
    """The rollouts of logs. Everything is read before the first is given; `defects` tell what could not be taken.

    `rollout_id` is that of the calls that name none, where it is given. Raises SurroundingsError for sources that
    cannot be read.
    """

    def __init__(self, recognition: Recognition, rollout_id: str | None = None) -> None:
        self._spool = Spool()
        self._chosen = rollout_id
        self._ids: dict[str, None] = {}
        self.defects: list[Defect] = list(recognition.refused)
        for log in recognition.logs:
            for reading in log.read():
                self._take(reading)

    @property
    def rollout_ids(self) -> list[str]:
        return sorted(self._ids, key=natural_key)

    def rollouts(self) -> Iterator[LogCapture]:
        """Each rollout, one in memory at a time."""
        for rollout_id in self.rollout_ids:
            yield self._capture(rollout_id)

    def _take(self, reading: Reading) -> None:
        if isinstance(reading, Defect):
            self.defects.append(reading)
            return
        if isinstance(reading, TokenLine):
            detail = "a token record is no raw call: convert it to tokens"
            self.defects.append(reading.entry.locate(Defect(reason="response_missing", detail=detail)))
            return
        place = Defect(reason="", file=reading.file, line=reading.line, byte=reading.byte, call=reading.call_id)
        option = [RolloutClaim("option", self._chosen)] if self._chosen is not None else []
        rollout_id = resolve_rollout([*reading.claims, *option])
        if isinstance(rollout_id, Defect):
            self.defects.append(rollout_id.at(file=place.file, line=place.line, byte=place.byte, call=place.call))
            return
        try:
            self._spool.add(rollout_id, reading)
            self._ids[rollout_id] = None
        except RecursionError:
            self.defects.append(place.at(reason="invalid_record", detail="nested too deeply"))

    def _capture(self, rollout_id: str) -> LogCapture:
        lines: dict[RawLine, float] = {}
        problems = Counter[str]()
        beginnings = Beginnings()
        for reading in self._spool.of(rollout_id):
            assert isinstance(reading, RawExchange)
            named = reading if reading.call_id is not None else named_call(reading)
            line = RawLine(named.call_id, capture_line(named))
            if line in lines:
                continue
            lines[line] = begun(named)
            calls = normalise(named)
            for call in calls:
                problems.update(candidate_of_call(rollout_id, call, len(calls), beginnings).problems)
        ordered = sorted(lines, key=lines.__getitem__)
        return LogCapture(rollout_id, tuple(line.data for line in ordered), dict(sorted(problems.items())))
