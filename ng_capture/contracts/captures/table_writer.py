"""Episodes as plain JSONL tables: a line for each call, all its fields as they stood (contracts.md 7.1)."""

from collections.abc import Iterator, Mapping

import msgspec

from ng_capture.contracts.captures.calls import calls_in, lost_calls
from ng_capture.contracts.captures.facts import Facts, beyond_record, facts_of
from ng_capture.contracts.captures.record_lines import RecordLine, output_items, record_lines
from ng_capture.contracts.captures.token_records import FACTS
from ng_capture.contracts.captures.tokens_writer import rollout_id_of
from ng_capture.contracts.captures.unheld import UNHELD, unheld
from ng_capture.contracts.episode import Episode
from ng_capture.contracts.interface import Feature, Options, Refused, Writer, Written
from ng_capture.contracts.losses import Loss, merged
from ng_capture.records.json_text import encode_json

_LOSSES: Mapping[str, Feature | None] = {**UNHELD, "tokens_incomplete": None}


class _Row(Facts, frozen=True, kw_only=True):
    """A call that has no token record."""

    rollout_id: str
    model_call_id: str | None
    response_id: str | None
    model: str | None
    output_items: list[dict[str, object]]


def write_table(episode: Episode, _: Options) -> Written | Refused:
    """A line for each call: its token record with all fields, else what is known of it.

    What a record does not hold of a call stands beside its fields, under `ng_capture_call`.
    """
    rollout_id = rollout_id_of(episode)
    lines = record_lines(calls_in(episode), rollout_id)
    documents = tuple(_row(at, line, rollout_id) for at, line in enumerate(lines))
    gaps = [Loss("metadata_dropped", detail="gaps")] if lost_calls(episode) else []
    return Written(documents, merged((*unheld(episode), *gaps, *_unheld_of(lines))))


def _row(at: int, line: RecordLine, rollout_id: str) -> bytes:
    made = line.made
    facts = facts_of(made.call)
    if line.data is None:
        row = _Row(
            rollout_id=rollout_id,
            model_call_id=made.call.call_id,
            response_id=made.call.response_id,
            model=made.call.model,
            output_items=output_items(made, f"{rollout_id}/{made.call.call_id or at}"),
            **msgspec.structs.asdict(facts),
        )
        return encode_json(msgspec.structs.asdict(row))
    if not beyond_record(made):
        return line.data
    told = {key: value for key, value in msgspec.structs.asdict(facts).items() if value is not None}
    return b'%b,"%b":%b}' % (line.data[:-1], FACTS.encode(), encode_json(told))


def _unheld_of(lines: list[RecordLine]) -> Iterator[Loss]:
    """Arrays that are not all there have no place: a table holds whole records."""
    for line in lines:
        if line.data is None and line.made.call.tokens is not None:
            detail = line.faults[0].message if line.faults else None
            yield Loss("tokens_incomplete", line.made.turn.place, detail=detail)


TABLE_WRITER = Writer(write_table, ".calls.jsonl", _LOSSES)
