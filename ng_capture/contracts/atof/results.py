"""What tools gave back: as the runtime saw it, and as the next request told the model (contracts.md 2.4)."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from ng_capture.contracts.atof.extras import with_ours
from ng_capture.contracts.atof.links import Place
from ng_capture.contracts.atof.texts import result_text
from ng_capture.contracts.atof.told import Ran, Said, Told, ToldResult
from ng_capture.contracts.episode import Opaque, SubagentRef, ToolResult
from ng_capture.contracts.sameness import words


class Retold(msgspec.Struct, frozen=True):
    """The results that requests tell: by the calls that they answer, and those that name no call that is there."""

    by_call: Mapping[Place, ToldResult]
    unlinked: Sequence[ToldResult]


def retold(told: Told) -> Retold:
    """The results of requests with their calls; what stands on a turn of history already is not told again."""
    places = _places(told.said)
    held = {result.call_id for said in told.said for result in said.turn.results}
    ran = {each.call_id for each in told.runs}
    by_call, unlinked = dict[Place, ToldResult](), list[ToldResult]()
    for (call_id, nth), each in told.results.items():
        place = places.get((call_id, nth))
        if place is not None and call_id not in {result.call_id for result in told.said[place.turn].turn.results}:
            by_call[place] = each
        elif place is None and call_id not in held and call_id not in ran:
            unlinked.append(each)
    return Retold(by_call, unlinked)


def _places(said: Sequence[Said]) -> Mapping[tuple[str, int], Place]:
    """Every call by its id and how often that id was given before."""
    seen, places = Counter[str](), dict[tuple[str, int], Place]()
    for at, each in enumerate(said):
        for number, call in enumerate(each.turn.calls):
            if call.call_id:
                places[call.call_id, seen[call.call_id]] = Place(at, number)
                seen[call.call_id] += 1
    return places


def result_of(ran: Ran, call_id: str | None, refs: Sequence[SubagentRef] = ()) -> ToolResult:
    """What a tool gave back, None where it never ended; `refs` are agents that it began."""
    end = ran.scope.end
    failure = end.metadata.get("otel.status_description") if end is not None and ran.scope.failed else None
    return ToolResult(
        call_id=call_id,
        content=result_text(end.data) if end is not None else None,
        is_error=True if ran.scope.failed else None,
        subagents=tuple(refs),
        extra=with_ours(None, error=failure),
    )


def as_told(result: ToolResult, told: ToolResult) -> ToolResult:
    """A result as the model was told it, which harnesses cut and word anew; what the tool gave stays beside it."""
    if told.content is None or any(isinstance(part, Opaque) for part in told.content):
        return result
    differs = result.content is not None and words(result.content) != words(told.content)
    return msgspec.structs.replace(
        result,
        content=told.content,
        is_error=told.is_error if result.is_error is None else result.is_error,
        item=told.item,
        extra=with_ours(result.extra, tool_output=result.content if differs else None),
    )
