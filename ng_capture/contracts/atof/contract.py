"""ATOF 0.1 is read: the conversations in a stream, one for each agent that works for nobody (contracts.md 2)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.contracts.atof.actors import Actor, Cast, cast_of
from ng_capture.contracts.atof.event_checks import DRAFT_KINDS
from ng_capture.contracts.atof.events import Event, Phase
from ng_capture.contracts.atof.extras import Extras
from ng_capture.contracts.atof.rules import fault
from ng_capture.contracts.atof.stream import read_stream
from ng_capture.contracts.atof.threads import Conversation, conversations
from ng_capture.contracts.episode import Episode
from ng_capture.contracts.interface import Contract, Feature, Head, Options, Read, Reader, Refused
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from ng_capture.records.json_text import printable

_KINDS = DRAFT_KINDS | {"scope", "mark"}
_GIVES = frozenset(Feature) - {Feature.TOKENS, Feature.REWARD, Feature.ROW}
_LOSSES = frozenset(
    {
        *("agent_version_unknown", "conversation_unavailable", "failed_call_omitted", "request_fields_dropped"),
        *("history_rewritten", "copied_context", "no_model_call", "subagent_parent_unknown", "subagent_dropped"),
        *("link_by_position", "link_ambiguous", "output_unlinked", "output_duplicate", "choice_dropped"),
        *("mark_dropped", "scope_dropped", "scope_unfinished", "think_tags_split", "item_order_changed"),
    }
)


def recognises(head: Head) -> bool:
    """True for an event of ATOF, or of its drafts, which are then refused by name."""
    return head.has("kind", "uuid", "timestamp") and head.value["kind"] in _KINDS


def read(source: Source, options: Options) -> Iterator[Read | Refused]:
    """One episode for each actor that works for nobody; the first has what no actor tells, and all that is damaged."""
    stream = read_stream(source)
    damage = _damage(stream.faults)
    if not stream.events or any(each.rule == "atof.draft" for each in stream.faults):
        yield Refused(damage)
        return
    cast = cast_of(stream)
    made = conversations(cast, Extras.of(stream), options)
    beside = tuple(_dropped(cast.beside))
    ids = _rollout_ids(cast, made)
    for actor in cast.tops:
        conversation = made[actor.key]
        losses, place = (*conversation.losses, *beside), printable(actor.key.strip("\0"))
        if conversation.thread.turns:
            yield Read(_episode(actor, conversation, ids[actor.key]), losses, damage, place)
        else:
            event = actor.events[0].event
            empty = fault("atof.episode.empty", f"{event.name or event.uuid} holds no conversation", line=event.line)
            yield Refused((*damage, empty), losses, place)
        damage, beside = (), ()


def validate(source: Source) -> Iterator[Fault]:
    """All faults of a stream."""
    yield from read_stream(source).faults


ATOF = Contract(
    "atof",
    "ATOF 0.1 event streams",
    "when agents, calls and tools began and ended, and what the runtime saw of them",
    "`metadata.session_id` of the agent's scope, else its `uuid`",
    reader=Reader(recognises, read, _GIVES, _LOSSES, validate),
)


def _damage(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """What is broken, once for each rule, with how often."""
    counts = Counter(each.rule for each in faults)
    first = {each.rule: each for each in reversed(faults) if each.severity == "error"}
    return tuple(
        msgspec.structs.replace(each, message=f"{each.message}; {counts[each.rule] - 1} more like it")
        if counts[each.rule] > 1
        else each
        for each in sorted(first.values(), key=lambda each: each.line or 0)
    )


def _dropped(beside: Sequence[Event]) -> Iterator[Loss]:
    """What stands in no actor's conversation."""
    for event in beside:
        if event.phase == Phase.MARK:
            yield Loss("mark_dropped", event.place, detail=event.name or None)
        elif event.phase == Phase.START:
            yield Loss("scope_dropped", event.place, detail=event.category)


def _rollout_ids(cast: Cast, made: Mapping[str, Conversation]) -> dict[str, str | None]:
    """The session that each conversation is of, where no other one is; else the agent's own uuid."""
    sessions = Counter(made[actor.key].thread.session_id for actor in cast.tops)
    ids = dict[str, str | None]()
    for actor in cast.tops:
        session = made[actor.key].thread.session_id
        ids[actor.key] = session if sessions[session] == 1 or actor.scope is None else actor.scope.uuid
    return ids


def _episode(actor: Actor, conversation: Conversation, rollout_id: str | None) -> Episode:
    unfinished = actor.scope is not None and actor.scope.end is None
    return Episode(
        contract="atof",
        main=conversation.thread,
        rollout_id=rollout_id,
        request=conversation.request,
        truncated=True if unfinished else None,
    )
