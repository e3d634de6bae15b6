"""What health counts of one rollout beside its verdict: lengths, models, what its raw calls used."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from ng_capture.chains.analysis import Analysis
from ng_capture.chains.calls import Call
from ng_capture.records.defects import Defect
from ng_capture.records.raw_call import LENGTH_STOPS, SAMPLING_PARAMETERS, RawCall
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.records.snapshot import Snapshot
from ng_capture.records.usage import Count, Usage, total_usage
from ng_capture.verdicts.judge import finish_reasons

UNKNOWN_MODEL = "unknown"

Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=2**63)]
"""As long as a raw call can say; where a document is read back, no other number is one."""

_TOKENS = 2**100
"""More than any calls add up to, each of 64 bits."""

_ATTEMPT = re.compile(r"-a([0-9]{1,9})\Z")
_GROUP = re.compile(r"(?P<group>.+)_g[0-9]+", re.DOTALL)
_TASK = re.compile(r"(?P<group>(?:step[0-9]+\.)?(?P<task>.+))-[0-9]+", re.DOTALL)


class Place(msgspec.Struct, frozen=True):
    """Where a rollout stands in its run: the task, the group that it is compared within, the attempt (0 the first)."""

    task: str | None
    group: str | None
    attempt: Count


class SamplingCount(msgspec.Struct, frozen=True):
    """How many requests to a model asked for a value of a sampling parameter; null for those that left it open."""

    model: str
    parameter: str
    value: str | None
    calls: Count


class RawMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """The raw calls of a rollout, each call id counted once. Latencies in milliseconds, those that are known."""

    calls: Count
    repeated_lines: Count
    damaged_lines: Count
    unidentified_lines: Count
    length_stopped_calls: Count
    usage: Usage
    calls_with_partial_usage: Count
    latencies: tuple[Milliseconds, ...]
    ttfts: tuple[Milliseconds, ...]
    error_categories: dict[str, Count]
    sampling: tuple[SamplingCount, ...]

    def __post_init__(self) -> None:
        sums = [tokens for tokens in msgspec.structs.astuple(self.usage) if tokens is not None]
        if not all(0 <= tokens < _TOKENS for tokens in sums):
            raise ValueError("a number of tokens that no calls add up to")


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """Of one rollout, over its distinct calls.

    `calls` has a token record or a raw call. `tools`: some request, or the finished row, offered tools; null where
    neither is known. `unfinished`: a call was announced or its line begun, and nothing says that the rollout ended.
    """

    place: Place
    calls: Count
    models: dict[str, Count]
    prompt_lengths: tuple[Count, ...]
    generation_lengths: tuple[Count, ...]
    zero_logprob_calls: Count
    repeated_lines: Count
    tools: bool | None
    unfinished: bool
    raw: RawMeasures | None


def measure(snapshot: Snapshot, analysis: Analysis, lost: Sequence[str], row: RolloutRow | None) -> Measures:
    """The measures of a judged rollout; `lost` are the calls that are known by their ids only."""
    calls = analysis.calls.values()
    raw = _once_each(snapshot.raw_calls or ())
    only_raw = [call for call in raw if call.call_id not in analysis.calls]
    models = Counter(call.fields.model or UNKNOWN_MODEL for call in calls)
    models.update(call.model or UNKNOWN_MODEL for call in only_raw)
    return Measures(
        place=place_of(snapshot.rollout_id, row),
        calls=len(analysis.calls) + len(only_raw),
        models=dict(sorted(models.items())),
        prompt_lengths=tuple(len(call.prompt) for call in calls if call.prompt is not None),
        generation_lengths=tuple(call.generated for call in calls),
        zero_logprob_calls=sum(map(_all_zero, calls)),
        repeated_lines=sum(len(call.repeats) for call in calls),
        tools=_tools(raw, row),
        unfinished=_unfinished(snapshot, lost),
        raw=None if snapshot.raw_calls is None else _raw_measures(snapshot, raw),
    )


def place_of(rollout_id: str, row: RolloutRow | None) -> Place:
    """Task, group and attempt as the finished row names them, else as the id spells them (capture-files.md 1.8)."""
    base, found = first_attempt_of(rollout_id), _ATTEMPT.search(rollout_id)
    attempt = int(found[1]) if found is not None else 0
    grouped, tasked = _GROUP.fullmatch(base), _TASK.fullmatch(base)
    group = grouped["group"] if grouped else tasked["group"] if tasked else None
    task = grouped["group"] if grouped else tasked["task"] if tasked else None
    if row is not None and row.group_id is not None:
        task, group = row.group_id, group or row.group_id
    return Place(task, group, attempt)


def first_attempt_of(rollout_id: str) -> str:
    """The id without its attempt: that of the rollout that was asked for."""
    return _ATTEMPT.sub("", rollout_id)


def _all_zero(call: Call) -> bool:
    """True for nothing but zeros, however few: one such call proves nothing (see the warning), their number does."""
    return bool(call.entry.log_probs) and not any(call.entry.log_probs or ())


def _once_each(raw_calls: Iterable[RawCall]) -> list[RawCall]:
    """One raw call per id, whatever the order of its lines: the answer that says most, with all that was counted."""
    lines: dict[str, list[RawCall]] = {}
    for call in raw_calls:
        lines.setdefault(call.call_id, []).append(call)
    return [merged_call(lines[call_id]) for call_id in sorted(lines)]


def merged_call(lines: Sequence[RawCall]) -> RawCall:
    """One raw call of the lines of one call id: the line that says most, with all that was counted."""
    if len(lines) == 1:
        return lines[0]
    chosen = max(lines, key=lambda call: (call.answered, _counted(call.usage), msgspec.json.encode(_place_free(call))))
    counts = zip(*(msgspec.structs.astuple(call.usage) for call in lines), strict=True)
    # a log that keeps a line for each block counts on as the answer grows
    usage = Usage(*(max((count for count in each if count is not None), default=None) for each in counts))
    return msgspec.structs.replace(chosen, usage=usage)


def _counted(usage: Usage) -> int:
    return sum(count is not None for count in msgspec.structs.astuple(usage))


def _place_free(call: RawCall) -> RawCall:
    return msgspec.structs.replace(call, line=0, byte=0)


def _tools(raw: Iterable[RawCall], row: RolloutRow | None) -> bool | None:
    told = [call.tools for call in raw if call.tools is not None]
    if row is not None:
        asked = row.values.get("responses_create_params")
        told += [bool(asked.get("tools"))] if isinstance(asked, dict) else []
    return any(told) if told else None


def _unfinished(snapshot: Snapshot, lost: Sequence[str]) -> bool:
    if snapshot.state is not None and (snapshot.state.frozen or snapshot.state.retired):
        return False
    damage = {defect.reason for defect in snapshot.defects} - {"bom"}
    announced = {intent.call_id for intent in snapshot.intents or ()}
    # behind any other damage an announced call may have its record
    return damage <= {"torn_tail"} and (bool(damage) or not announced.isdisjoint(lost))


def _raw_measures(snapshot: Snapshot, calls: Sequence[RawCall]) -> RawMeasures:
    damaged = [defect for defect in snapshot.defects if defect.file in snapshot.capture_files and is_unread(defect)]
    categories = Counter(call.category for call in calls if call.category is not None)
    return RawMeasures(
        calls=len(calls),
        repeated_lines=len(snapshot.raw_calls or ()) - len(calls),
        damaged_lines=len(damaged),
        unidentified_lines=snapshot.unidentified_lines,
        length_stopped_calls=sum(reason in LENGTH_STOPS for reason in finish_reasons(snapshot).values()),
        usage=total_usage(call.usage for call in calls),
        calls_with_partial_usage=sum(call.answered and call.usage.partial for call in calls),
        latencies=tuple(call.latency_ms for call in calls if call.latency_ms is not None),
        ttfts=tuple(call.latency_ttft_ms for call in calls if call.latency_ttft_ms is not None),
        error_categories=dict(sorted(categories.items())),
        sampling=tuple(_sampling(calls)),
    )


def is_unread(defect: Defect) -> bool:
    """True for a line that could not be read, not for one that was only noted."""
    return defect.reason not in ("bom", "missing_newline")


def _sampling(calls: Iterable[RawCall]) -> Iterable[SamplingCount]:
    asked: Counter[tuple[str, str, str | None]] = Counter()
    for call in calls:
        for parameter in SAMPLING_PARAMETERS if call.sampling is not None else ():
            asked[call.model or UNKNOWN_MODEL, parameter, (call.sampling or {}).get(parameter)] += 1
    for (model, parameter, value), number in sorted(asked.items(), key=lambda item: (*item[0][:2], item[0][2] or "")):
        yield SamplingCount(model, parameter, value, number)
