"""Episodes as token records: lines of a capture directory's `.tokens.jsonl` (capture-files.md 2)."""

from collections.abc import Iterator, Mapping

from ng_capture.contracts.captures.calls import Made, calls_in, lost_calls
from ng_capture.contracts.captures.facts import beyond_record
from ng_capture.contracts.captures.record_lines import RecordLine, record_lines
from ng_capture.contracts.captures.rules import fault
from ng_capture.contracts.captures.unheld import UNHELD, unheld
from ng_capture.contracts.conversion import file_stem
from ng_capture.contracts.episode import Episode
from ng_capture.contracts.interface import Feature, Options, Refused, SideFile, Writer, Written
from ng_capture.contracts.losses import Loss, merged
from ng_capture.files.names import FileKind
from ng_capture.records.usage import UNKNOWN_USAGE

_ALL = (
    "prompt ids, generated ids and log probabilities (of raw calls `ng-capture ingest` reads them in every engine's "
    "spelling)"
)
_LOSSES: Mapping[str, Feature | None] = {
    **UNHELD,
    "tokens_incomplete": None,
    "usage_dropped": Feature.USAGE,
    "finish_reason_dropped": Feature.FINISH,
    "timestamps_dropped": Feature.TIMES,
}


def rollout_id_of(episode: Episode) -> str:
    """The rollout that records of an episode name, which is what their file must be named after."""
    main = episode.main
    return file_stem(episode.rollout_id or main.trajectory_id or main.session_id or "episode")


def write_tokens(episode: Episode, _: Options) -> Written | Refused:
    """The records of all calls that have complete tokens.

    Where a call has none, or calls of the source are lost, a marker beside the records says so: a rollout that was not
    whole does not become one that looks so.
    """
    rollout_id = rollout_id_of(episode)
    lines = record_lines(calls_in(episode), rollout_id)
    faults = tuple(fault for line in lines for fault in line.faults)
    losses = merged((*unheld(episode), *_unheld_of(lines)))
    documents = tuple(line.data for line in lines if line.data is not None)
    if not documents and not faults:
        faults = (fault("tokens.none", f"no call has {_ALL}"),)
    if faults:
        return Refused(faults, losses)
    marker = SideFile(f"{rollout_id}.{FileKind.INCOMPLETE}", b"\n")
    incomplete = lost_calls(episode) or any(loss.code == "tokens_incomplete" for loss in losses)
    return Written(documents, losses, (marker,) if incomplete else ())


def _unheld_of(lines: list[RecordLine]) -> Iterator[Loss]:
    for line in lines:
        made, place = line.made, line.made.turn.place
        if line.data is None:
            if not made.omitted or made.call.tokens is not None:
                yield Loss("tokens_incomplete", place, detail=_missing(made))
        elif beyond_record(made):
            call = made.call
            if call.usage != UNKNOWN_USAGE:
                yield Loss("usage_dropped", place)
            if call.finish_reason is not None:
                yield Loss("finish_reason_dropped", place)
            if any(time is not None for time in (call.started_at, call.latency_ms, call.latency_ttft_ms)):
                yield Loss("timestamps_dropped", place)


def _missing(made: Made) -> str:
    """Which arrays a call lacks."""
    tokens = made.call.tokens
    if tokens is None:
        return "a call without tokens"
    arrays = {"prompt ids": tokens.prompt_ids, "generated ids": tokens.completion_ids, "log probs": tokens.log_probs}
    missing = [name for name, array in arrays.items() if not array]
    return f"no {', no '.join(missing)}" if missing else "another number of log probabilities than ids"


TOKENS_WRITER = Writer(write_tokens, ".tokens.jsonl", _LOSSES)
