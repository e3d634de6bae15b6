"""The broken edges of a rollout: where each breaks, what stands there, the likely cause, what it costs."""

from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import msgspec

from ng_capture.chains.calls import Call
from ng_capture.chains.divergence import Divergence, Region, diverge
from ng_capture.ingest.exchange import Exchange
from ng_capture.ingest.parents import presumed_parents
from ng_capture.outputs.explain.causes import CAUSES
from ng_capture.outputs.explain.cost import tokens_lost
from ng_capture.outputs.explain.edge import Edge
from ng_capture.outputs.explain.likely import likely_cause
from ng_capture.outputs.explain.rollout import ShownRollout
from ng_capture.records.ids import IdSequence
from ng_capture.tokenizer import Tokenizer

_AROUND = 8


class Window(msgspec.Struct, frozen=True):
    """Ids around the first difference: `ids` begin at `start` of their sequence; `text` where a tokenizer is known."""

    start: int
    ids: tuple[int, ...]
    text: str | None


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose prompt does not begin with what its parent held.

    `parent_named`: the record names it; else it is presumed, by the conversation or by the ids. `offset` counts from
    the beginning of the region. `held_run` and `new_run` ids differ; from `held_meets` and `new_meets` on both go on
    alike, null where they do not. `texts_equal` compares the runs as text, null without a tokenizer. `fits` is another
    call whose whole sequence the prompt does begin with. `tokens_lost` by policy: what this break alone costs.
    """

    rollout_id: str
    call: str
    parent: str
    parent_named: bool
    reason: str
    turn: int
    model: str
    common_len: int
    region: Region
    offset: int
    parent_prompt_len: int
    held_len: int
    new_len: int
    held: Window
    new: Window
    held_run: int
    new_run: int
    held_meets: int | None
    new_meets: int | None
    texts_equal: bool | None
    fits: str | None
    cause: str
    group: str
    confidence: Literal["likely", "open"]
    meaning: str
    remedy: str
    tokens_lost: dict[str, int]


class Unlinked(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose link failed although no prefix is broken: nothing was named, or what was named is not there.

    `fits` is the call with whose whole sequence its prompt begins, None where there is none; `fits_len` counts its ids.
    """

    call: str
    reason: str
    fits: str | None
    fits_len: int | None


def find_unlinked(rollout: ShownRollout, breaks: Collection[Break]) -> tuple[Unlinked, ...]:
    """The calls whose failed link is not a broken prefix."""
    analysis, broken = rollout.judgement.analysis, {each.call for each in breaks}
    found = []
    for call_id, link in analysis.links.items():
        if link.fault is not None and call_id not in broken:
            fits = _fitting(rollout, analysis.calls[call_id], None)
            full = analysis.calls[fits].full if fits is not None else None
            length = None if full is None else len(full)
            found.append(Unlinked(call=call_id, reason=link.fault.reason, fits=fits, fits_len=length))
    return tuple(found)


def find_breaks(rollout: ShownRollout, tokenizer: Tokenizer | None) -> tuple[Break, ...]:
    """Every broken edge of a rollout, in the order in which the calls were made."""
    analysis = rollout.judgement.analysis
    edges = {}
    for call, parent in _broken_edges(rollout):
        assert parent.full is not None and parent.prompt is not None and call.prompt is not None
        found = diverge(parent.full, len(parent.prompt), call.prompt)
        if found is not None:
            edges[call.id] = (call, parent, found)
    lost = tokens_lost(rollout.judgement, {call: parent.id for call, (_, parent, _) in edges.items()})
    order = sorted(analysis.calls.values(), key=lambda call: (call.fields.created_at, call.id))
    turns = {call.id: turn for turn, call in enumerate(order)}
    breaks = [
        _break(rollout, call, parent, found, turns[call.id], lost[call.id], tokenizer)
        for call, parent, found in edges.values()
    ]
    return tuple(sorted(breaks, key=lambda each: each.turn))


def _broken_edges(rollout: ShownRollout) -> Iterator[tuple[Call, Call]]:
    """Calls whose link failed, each with the call that it names, or that it seems to continue."""
    analysis = rollout.judgement.analysis
    presumed = _presumed(rollout)
    for call_id, link in analysis.links.items():
        call = analysis.calls[call_id]
        if link.fault is None or call.prompt is None:
            continue
        parent = analysis.calls.get(link.fault.parent or presumed.get(call_id) or "")
        if parent is not None and parent.full is not None and parent.id != call_id:
            yield call, parent


def _presumed(rollout: ShownRollout) -> Mapping[str, str | None]:
    """Parents by conversation where every call has its raw call; else, if none is named, by the longest beginning."""
    calls, links = rollout.judgement.analysis.calls, rollout.judgement.analysis.links
    if all(call in rollout.exchanges for call in calls):
        return presumed_parents([rollout.exchanges[call] for call in calls])
    unnamed = [calls[call] for call, link in links.items() if link.fault is not None and not link.fault.parent]
    return {call.id: _longest(call, calls) for call in unnamed}


def _longest(call: Call, calls: Mapping[str, Call]) -> str | None:
    """The earlier call with whose sequence a prompt has most in common; of equals the last."""
    made = (call.fields.created_at, call.id)
    shared = [
        (_common(call.prompt, other.full), other.fields.created_at, other.id)
        for other in calls.values()
        if (other.fields.created_at, other.id) < made
    ]
    length, _, parent = max(shared, default=(0, 0.0, ""))
    return parent if length else None


def _common(prompt: IdSequence | None, full: IdSequence | None) -> int:
    return 0 if prompt is None or full is None else prompt.common_prefix(full)


def _break(
    rollout: ShownRollout,
    call: Call,
    parent: Call,
    found: Divergence,
    turn: int,
    lost: dict[str, int],
    tokenizer: Tokenizer | None,
) -> Break:
    assert parent.full is not None and parent.prompt is not None and call.prompt is not None
    edge = _edge(rollout, call, parent, found, tokenizer)
    likely = likely_cause(edge)
    cause = CAUSES[likely.cause]
    fault = rollout.judgement.analysis.links[call.id].fault
    assert fault is not None
    return Break(
        rollout_id=rollout.judgement.rollout_id,
        call=call.id,
        parent=parent.id,
        parent_named=fault.parent == parent.id and not rollout.raw_only,
        reason=fault.reason,
        turn=turn,
        model=call.fields.model,
        common_len=found.common_len,
        region=found.region,
        offset=found.offset,
        parent_prompt_len=len(parent.prompt),
        held_len=found.held_len,
        new_len=found.new_len,
        held=_window(edge.held, found.common_len, tokenizer),
        new=_window(edge.new, found.common_len, tokenizer),
        held_run=found.held_run,
        new_run=found.new_run,
        held_meets=found.held_meets,
        new_meets=found.new_meets,
        texts_equal=None if tokenizer is None else edge.texts_equal,
        fits=_fitting(rollout, call, parent.id),
        cause=cause.name,
        group=cause.group.value,
        confidence=likely.confidence,
        meaning=cause.meaning,
        remedy=cause.remedy,
        tokens_lost=lost,
    )


def _edge(rollout: ShownRollout, call: Call, parent: Call, found: Divergence, tokenizer: Tokenizer | None) -> Edge:
    assert parent.full is not None and parent.prompt is not None and call.prompt is not None
    calls = rollout.judgement.analysis.calls
    raw: Exchange | None = rollout.exchanges.get(parent.id)
    others = [other for other in calls.values() if other.id != parent.id and other.generated]
    first = [len(other.prompt) for other in calls.values() if other.prompt is not None]
    return Edge(
        found,
        parent.full.values(),
        len(parent.prompt),
        call.prompt.values(),
        finish_reason=raw.finish_reason if raw is not None else None,
        parent=raw,
        child=rollout.exchanges.get(call.id),
        tokenizer=tokenizer,
        stops=frozenset(other.full[len(other.full) - 1] for other in others if other.full is not None),
        first_prompt_len=min(first),
    )


def _window(ids: "array[int]", place: int, tokenizer: Tokenizer | None) -> Window:
    start = max(0, place - _AROUND)
    shown = ids[start : place + _AROUND]
    return Window(start, tuple(shown), None if tokenizer is None else tokenizer.text(shown))


def _fitting(rollout: ShownRollout, call: Call, parent: str | None) -> str | None:
    """The call with the longest sequence that the prompt does begin with; none where only the parent would do."""
    assert call.prompt is not None
    fitting = [
        (len(other.full), other.id)
        for other in rollout.judgement.analysis.calls.values()
        if other.id not in (call.id, parent)
        and other.full is not None
        and other.generated
        and call.prompt.starts_with(other.full)
    ]
    return max(fitting)[1] if fitting else None
