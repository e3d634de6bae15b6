"""The calls of a rollout as a flat tree: each chain from its root on, what was asked again beside what was kept."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Literal

import msgspec
import orjson

from ng_capture.chains.analysis import Analysis
from ng_capture.chains.calls import Call
from ng_capture.ingest.messages import Message, ToolCall
from ng_capture.outputs.explain.rollout import ShownRollout
from ng_capture.verdicts.accounting import left_out
from ng_capture.verdicts.judge import Judgement, Verdict, finish_reasons

TREE_SCHEMA = "ng-capture.show-rollout/1"
_WHAT = 200

Mark = Literal["trained", "context", "retry", "left_out"]


class CallLine(msgspec.Struct, frozen=True, kw_only=True):
    """One call.

    `number` counts the calls as they were made. `new` are the prompt's tokens behind its parent's sequence, None where
    the link does not hold; `stop` and `what` are None where nothing tells them.
    """

    number: int
    call: str
    chain: str
    mark: Mark
    prompt: int | None
    new: int | None
    generated: int
    stop: str | None
    what: str | None
    note: str | None


class RolloutTree(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout and its calls, chain by chain; calls that stand in no chain come last, under `aside`."""

    schema: str = TREE_SCHEMA
    rollout_id: str
    verdict: Verdict
    reasons: tuple[str, ...]
    calls: int
    chains: int
    reward: float | None
    models: tuple[str, ...]
    raw_only: bool
    lines: tuple[CallLine, ...]


ASIDE = "aside"


def tree_of(rollout: ShownRollout) -> RolloutTree:
    """The tree of a judged rollout."""
    judgement, analysis = rollout.judgement, rollout.judgement.analysis
    return RolloutTree(
        rollout_id=judgement.rollout_id,
        verdict=judgement.verdict,
        reasons=judgement.reasons,
        calls=len(analysis.calls),
        chains=len(analysis.chains),
        reward=rollout.row.reward if rollout.row is not None else None,
        models=tuple(sorted({call.fields.model for call in analysis.calls.values() if call.fields.model})),
        raw_only=rollout.raw_only,
        lines=tuple(_lines(rollout)),
    )


def _lines(rollout: ShownRollout) -> Iterator[CallLine]:
    judgement, analysis = rollout.judgement, rollout.judgement.analysis
    made = sorted(analysis.calls.values(), key=lambda call: (call.fields.created_at, call.id))
    numbers = {call.id: number for number, call in enumerate(made)}
    stops = finish_reasons(judgement.snapshot)
    lost = left_out(analysis, judgement.judging.policy, judgement.rows, ())
    told: set[str] = set()
    chains = sorted(analysis.chains, key=lambda chain: chain.chain_id != "main")
    order = [(chain.chain_id, call) for chain in chains for call in chain.calls]
    order += [(ASIDE, call.id) for call in made if not any(call.id in chain.calls for chain in chains)]
    retries = _retries(analysis)
    for chain, call_id in order:
        if call_id in told:
            continue
        for other in sorted((*retries.get(call_id, ()), call_id), key=numbers.__getitem__):
            if other not in told:
                told.add(other)
                note = _note(analysis, other, call_id, numbers, lost)
                yield _line(
                    rollout, analysis.calls[other], chain, numbers, stops, _mark(judgement, other, call_id), note
                )


def _retries(analysis: Analysis) -> Mapping[str, list[str]]:
    """Answers that were asked again, by the call that was kept in their place."""
    kept: dict[str, list[str]] = {}
    for dropped in sorted(analysis.settled.quarantined):
        twin = next(call for call in analysis.links if _same_prompt(analysis, call, dropped))
        kept.setdefault(twin, []).append(dropped)
    return kept


def _same_prompt(analysis: Analysis, call: str, dropped: str) -> bool:
    if call == dropped or call in analysis.settled.quarantined:
        return False
    one, other = analysis.calls[call].prompt, analysis.calls[dropped].prompt
    return one is not None and other is not None and len(one) == len(other) and one.starts_with(other)


def _mark(judgement: Judgement, call: str, kept: str) -> Mark:
    if call != kept:
        return "retry"
    if any(call in row.trained for row in judgement.rows):
        return "trained"
    return "context" if any(call in row.calls for row in judgement.rows) else "left_out"


def _note(analysis: Analysis, call: str, kept: str, numbers: Mapping[str, int], lost: Mapping[str, str]) -> str | None:
    if call != kept:
        return f"retry of #{numbers[kept]}, dropped"
    link = analysis.links.get(call)
    if link is not None and link.fault is not None:
        return link.fault.reason
    reason = lost.get(call)
    return reason or None


def _line(
    rollout: ShownRollout,
    call: Call,
    chain: str,
    numbers: Mapping[str, int],
    stops: Mapping[str, str],
    mark: Mark,
    note: str | None,
) -> CallLine:
    return CallLine(
        number=numbers[call.id],
        call=call.id,
        chain=chain,
        mark=mark,
        prompt=None if call.prompt is None else len(call.prompt),
        new=_new(rollout.judgement.analysis, call),
        generated=call.generated,
        stop=stops.get(call.id),
        what=what_of(rollout.answer(call)),
        note=note,
    )


def _new(analysis: Analysis, call: Call) -> int | None:
    link = analysis.links.get(call.id)
    if call.prompt is None or (link is not None and link.fault is not None):
        return None
    # what generated nothing has no link of its own
    named = link.parent if link is not None else call.fields.parent_call_id
    parent = analysis.calls[named].full if named in analysis.calls else None
    if named is None:
        return len(call.prompt)
    return len(call.prompt) - len(parent) if parent is not None and call.prompt.starts_with(parent) else None


def what_of(answer: Message | None) -> str | None:
    """An answer in a few words: the tools that it calls, else how its text begins."""
    if answer is None:
        return None
    if answer.tool_calls:
        groups = [(name, list(calls)) for name, calls in groupby(answer.tool_calls, key=lambda call: call.name)]
        return ", ".join(f"{name} x{len(calls)}" if len(calls) > 1 else _called(calls[0]) for name, calls in groups)
    return " ".join(answer.text.split())[:_WHAT] or ("(reasoning only)" if answer.reasoning else "(nothing)")


def _called(call: ToolCall) -> str:
    """`bash: ls -la src`: the tool and its first argument."""
    try:
        arguments = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        arguments = call.arguments
    first = next(iter(arguments.values()), "") if isinstance(arguments, dict) else arguments
    try:
        text = first if isinstance(first, str) else orjson.dumps(first).decode()
    except TypeError:
        # nested deeper than it writes
        text = call.arguments
    return f"{call.name}: {' '.join(text.split())[:_WHAT]}" if text else call.name
