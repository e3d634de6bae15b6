"""verifiers is read: results.jsonl of evaluations, and traces.jsonl (contracts.md 6)."""

from collections import Counter
from collections.abc import Iterator

from ng_capture.contracts.episode import Json
from ng_capture.contracts.interface import Contract, Feature, Head, Options, Read, Reader, Refused
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import JsonLine, Source
from ng_capture.contracts.verifiers.results import example_of, is_row, read_row
from ng_capture.contracts.verifiers.rules import fault
from ng_capture.contracts.verifiers.traces import is_episode, read_traces
from ng_capture.records.json_text import object_in

_ROWS, _METADATA = "results.jsonl", "metadata.json"
_GIVES = frozenset(Feature) - {Feature.CACHE_WRITES, Feature.FAILED_RESULTS, Feature.SIGNATURES}
_LOSSES = frozenset(
    {
        *("link_by_position", "link_ambiguous", "output_unlinked", "think_tags_split", "copied_context"),
        *("conversation_unavailable", "reward_unavailable", "step_fields_dropped", "failed_call_omitted"),
        *("tokens_incomplete", "logprobs_rounded", "reasoning_encrypted_opaque"),
        *("history_rewritten", "subagent_parent_unknown", "choice_dropped"),
    }
)


def recognises(head: Head) -> bool:
    """True for a row of results and for an episode of traces."""
    return is_row(head.value) or is_episode(head.value)


def read(source: Source, options: Options) -> Iterator[Read | Refused]:
    """One episode for each row, and for each trace."""
    attempts, metadata, lines = Counter[object](), _metadata(source), 0
    for line in source.lines("verifiers"):
        lines += 1
        yield from _read(line, attempts, metadata, options)
    if not lines:
        yield Refused((fault("verifiers.empty", "no records"),))


def validate(source: Source) -> Iterator[Fault]:
    """All faults of a file."""
    for outcome in read(source, Options()):
        yield from outcome.faults


VERIFIERS = Contract(
    "verifiers",
    "verifiers rows (results.jsonl) and traces (traces.jsonl)",
    "the reward of a rollout and what it is made of; in traces also the exact ids of every call",
    "`id` of the trace; rows by `example_id` and their order",
    reader=Reader(recognises, read, _GIVES, _LOSSES, validate),
)


def _read(
    line: JsonLine, attempts: Counter[object], metadata: Json | None, options: Options
) -> Iterator[Read | Refused]:
    """The outcomes of a line; what is odd about its text is told with the first."""
    value, odd = line.value, line.careful.faults
    if is_row(value):
        example = example_of(value)
        outcomes: Iterator[Read | Refused] = iter([read_row(value, line.number, attempts[example], metadata, options)])
        attempts[example] += 1
    elif is_episode(value):
        outcomes = read_traces(value, line.number, options)
    else:
        found = () if not line.careful.read else (fault("verifiers.line", "no record", line=line.number),)
        outcomes = iter([Refused(found, place=f"line {line.number}")])
    for outcome in outcomes:
        yield with_faults(outcome, odd)
        odd = ()


def with_faults(outcome: Read | Refused, faults: tuple[Fault, ...]) -> Read | Refused:
    """An outcome with further faults before its own."""
    if isinstance(outcome, Read):
        return Read(outcome.episode, outcome.losses, (*faults, *outcome.faults), outcome.place)
    return Refused((*faults, *outcome.faults), outcome.losses, outcome.place)


def _metadata(source: Source) -> Json | None:
    """What the library writes beside its rows: the model, and how it was asked."""
    name = source.file_name
    beside = source.beside(f"{name.removesuffix(_ROWS)}{_METADATA}") if name.endswith(_ROWS) else None
    if beside is None:
        return None
    return object_in(Source(str(beside)).document("verifiers").value) or None
