"""What an actor said and was told, event by event (contracts.md 2.4)."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.contracts.atof.actors import Actor, Placed
from ng_capture.contracts.atof.events import Event, Phase
from ng_capture.contracts.atof.extras import Extras, with_ours
from ng_capture.contracts.atof.payloads import answered_in, asked_in, has_failed
from ng_capture.contracts.atof.requests import Requests
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.atof.texts import boundary_text, note_text, summary_text
from ng_capture.contracts.dialects.interface import Asked
from ng_capture.contracts.episode import Json, ModelCall, Role, ToolResult, Turn
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.sameness import spoken
from ng_capture.records.json_text import object_in

_MARK_ROLES = {
    **{role.value: role for role in (Role.SYSTEM, Role.DEVELOPER, Role.USER, Role.ASSISTANT)},
    "agent": Role.ASSISTANT,
}
_MESSAGE = re.compile(r"/(?:messages|input)/(\d+)", re.ASCII)
_LINKS = frozenset({"link_by_position", "link_ambiguous", "output_unlinked"})


class Said(msgspec.Struct, frozen=True):
    """A turn, at the place of its event in the stream; `scope` is that of the call or context that made it."""

    at: int
    turn: Turn
    scope: str | None = None


class Ran(msgspec.Struct, frozen=True):
    """A tool that ran, from the place of its first event in the stream to that of its last."""

    since: int
    at: int
    scope: Scope

    @property
    def call_id(self) -> str | None:
        """The call that the tool names."""
        named = self.scope.profile.get("tool_call_id")
        return named if isinstance(named, str) and named else None

    @property
    def arguments(self) -> object:
        """What the tool was given; None where its start is not known."""
        return self.scope.start.data if self.scope.start is not None else None


class ToldResult(msgspec.Struct, frozen=True):
    """What a tool gave back, as a request tells it, at the place of that request."""

    at: int
    result: ToolResult


class Told(msgspec.Struct, frozen=True):
    """All that an actor's events tell.

    `functions` are application steps that ended, with their places. `results` are by call id and how often the request
    named that id before. `first` is the first request. `failed` tells of calls without an answer.
    """

    said: Sequence[Said]
    runs: Sequence[Ran]
    functions: Sequence[tuple[int, Scope]]
    results: Mapping[tuple[str, int], ToldResult]
    first: Asked | None
    failed: Sequence[Json]
    losses: Sequence[Loss]


class Telling:
    """One actor's events, told in their order."""

    def __init__(self, actor: Actor, extras: Extras, options: Options) -> None:
        self._actor, self._extras, self._options = actor, extras, options
        self._requests, self._ends = Requests(), dict[str, int]()
        self._said, self._losses, self._failed = list[Said](), list[Loss](), list[Json]()
        self._runs, self._functions = dict[str, Ran](), list[tuple[int, Scope]]()
        self._results = dict[tuple[str, int], ToldResult]()
        self._asked = dict[str, Asked]()
        self._announced = Counter[object]()
        self._calls_models = any(
            placed.event.category == "llm" and placed.event.phase != Phase.MARK for placed in actor.events
        )

    def tell(self) -> Told:
        """What the events tell."""
        for placed in self._actor.events:
            if placed.event.phase == Phase.MARK:
                self._mark(placed)
            else:
                self._scope(placed, self._extras.stream.scopes[placed.event.uuid])
        first = next(iter(self._asked.values()), None)
        return Told(
            self._said, tuple(self._runs.values()), self._functions, self._results, first, self._failed, self._losses
        )

    def _scope(self, placed: Placed, scope: Scope) -> None:
        starts = placed.event.phase == Phase.START
        match scope.category:
            case "llm" if starts:
                self._ask(placed.at, scope)
            case "llm":
                self._answer(placed.at, scope)
            case "tool":
                since = self._runs[scope.uuid].since if scope.uuid in self._runs else placed.at
                self._runs[scope.uuid] = Ran(since, placed.at, scope)
            case "agent":
                self._boundary(placed, scope)
            case "context" if not starts:
                self._context(placed.at, scope)
            case _ if scope.uuid == self._actor.key:
                self._boundary(placed, scope)
            case "function" if not starts:
                self._functions.append((placed.at, scope))
            case _ if not starts:
                self._note(placed, scope)

    def _ask(self, at: int, scope: Scope) -> None:
        asked = asked_in(scope, self._options)
        if not asked.turns:
            return
        self._asked[scope.uuid] = asked
        new, self._ends[scope.uuid] = self._requests.add(asked.turns)
        assert scope.start is not None
        if new.rewritten:
            self._losses.append(Loss("history_rewritten", new.beyond or scope.start.place))
        self._remember(at, asked.turns)
        fresh = [turn for turn in new.turns if not self._is_known(turn)]
        for turn in fresh:
            self._said.append(Said(at, msgspec.structs.replace(turn, timestamp=scope.start.moment.spelled)))
            if turn.copied:
                self._losses.append(Loss("copied_context", turn.place))
        self._losses += _of_new(asked.losses, fresh, new.beyond)
        self._compare(scope, asked)

    def _is_known(self, turn: Turn) -> bool:
        """True for what a mark or a context said already, and for a model's turn that is here as its answer."""
        key = spoken(turn)
        if self._announced[key]:
            self._announced[key] -= 1
            return True
        if turn.role != Role.ASSISTANT:
            return False
        ids = {call.call_id for call in turn.calls if call.call_id}
        made = (said.turn for said in self._said if said.turn.fresh)
        return any(spoken(each) == key or any(call.call_id in ids for call in each.calls) for each in made)

    def _remember(self, at: int, turns: Sequence[Turn]) -> None:
        """Results that a request tells; the first telling counts, later ones may be cut to save room."""
        seen = Counter[str]()
        for turn in turns:
            occurrences = {}
            for call in turn.calls:
                if call.call_id:
                    occurrences[call.call_id] = seen[call.call_id]
                    seen[call.call_id] += 1
            for result in turn.results:
                if result.call_id:
                    key = (result.call_id, occurrences.get(result.call_id, 0))
                    self._results.setdefault(key, ToldResult(at, result))

    def _compare(self, scope: Scope, asked: Asked) -> None:
        """Parameters that differ from those of the first request have no place."""
        first = next(iter(self._asked.values()))
        before, now = first.parameters or {}, asked.parameters or {}
        if asked is first:
            return
        names = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        if names:
            assert scope.start is not None
            self._losses.append(Loss("request_fields_dropped", f"{scope.start.place}/data", detail=", ".join(names)))

    def _answer(self, at: int, scope: Scope) -> None:
        assert scope.end is not None
        if has_failed(scope):
            error = scope.end.metadata.get("otel.status_description") or object_in(scope.end.data).get("error")
            self._failed.append({"call": scope.uuid, "error": error})
            self._losses.append(Loss("failed_call_omitted", scope.end.place))
            return
        answered = answered_in(scope, self._options)
        assert answered.turn is not None
        if answered.turn.content is None and not scope.end.data:
            self._losses.append(Loss("conversation_unavailable", scope.end.place))
        self._losses += answered.losses
        if scope.uuid in self._ends:
            self._requests.answered(self._ends[scope.uuid])
        self._said.append(Said(at, self._turn(scope, answered.turn, self._asked.get(scope.uuid)), scope.uuid))

    def _turn(self, scope: Scope, turn: Turn, asked: Asked | None) -> Turn:
        """The answer with what its scope tells of the call; the runtime's name of the model counts."""
        start, end, call = scope.start, scope.end, turn.call or ModelCall()
        assert end is not None
        asked_model = (asked.parameters or {}).get("model") if asked is not None else None
        named = scope.profile.get("model_name")
        model = next(
            (each for each in (named, call.model, asked_model, scope.name) if isinstance(each, str) and each), None
        )
        call = msgspec.structs.replace(
            call,
            call_id=scope.uuid,
            model=model,
            started_at=start.moment.seconds if start is not None else None,
            completed_at=end.moment.seconds,
            latency_ms=(end.moment.nanos - start.moment.nanos) / 1_000_000 if start is not None else None,
        )
        served = turn.call.model if turn.call is not None and turn.call.model != model else None
        effort = object_in((asked.parameters or {}).get("reasoning")).get("effort") if asked is not None else None
        return msgspec.structs.replace(
            turn,
            call=call,
            timestamp=end.moment.spelled,
            reasoning_effort=effort if isinstance(effort, str | float) else None,
            extra=with_ours({**(turn.extra or {}), **self._extras.of_scope(scope)}, response_model=served),
        )

    def _context(self, at: int, scope: Scope) -> None:
        """A change of what the model sees: a step as ATIF has it; its summary is not told again (1.4)."""
        assert scope.end is not None
        summary = summary_text(scope.end.data)
        management = {key: scope.profile.get(key) for key in ("type", "boundary")}
        extra: dict[str, object] = {"context_management": management}
        if scope.end.data_schema is not None:
            extra["data_schema"] = scope.end.data_schema
        turn = Turn(
            Role.SYSTEM,
            scope.name or "context_management",
            results=(ToolResult(None, summary),) if summary is not None else (),
            timestamp=scope.end.moment.spelled,
            extra=extra,
            place=scope.end.place,
        )
        self._said.append(Said(at, turn, scope.uuid))
        if summary is not None and management["boundary"] == "replace":
            self._announced[spoken(Turn(Role.SYSTEM, summary))] += 1

    def _boundary(self, placed: Placed, scope: Scope) -> None:
        """What a workflow was given and what it gave, where no call in it tells."""
        event = placed.event
        text = None if self._calls_models else boundary_text(event.data)
        if text is not None:
            starts = event.phase == Phase.START
            extra = self._extras.of_scope(scope, until=event)
            turn = Turn(Role.USER if starts else Role.ASSISTANT, text, timestamp=event.moment.spelled, extra=extra)
            self._said.append(Said(placed.at, msgspec.structs.replace(turn, place=f"{event.place}/data")))

    def _note(self, placed: Placed, scope: Scope) -> None:
        """What a scope of no contract gave: an event beside the conversation."""
        text = note_text(placed.event.data)
        if text is None:
            self._losses.append(Loss("scope_dropped", placed.event.place, detail=scope.category))
        else:
            self._said.append(Said(placed.at, noted(placed.event, text, self._extras.of_scope(scope))))

    def _mark(self, placed: Placed) -> None:
        """A mark: a turn where it names who speaks, else a note; with nothing to say it is dropped (2.2, 9)."""
        mark, data = placed.event, object_in(placed.event.data)
        role = _MARK_ROLES.get(str(data.get("role")))
        if role is not None:
            said = data.get("content") if data.get("content") is not None else data.get("message")
            turn = Turn(role, note_text(said) or "", timestamp=mark.moment.spelled, extra=self._extras.of_mark(mark))
            self._said.append(Said(placed.at, msgspec.structs.replace(turn, place=f"{mark.place}/data")))
            self._announced[spoken(turn)] += 1
        elif mark.data is None:
            self._losses.append(Loss("mark_dropped", mark.place, detail=mark.name or None))
        else:
            text = "{}" if mark.data == {} else note_text(mark.data)
            self._said.append(Said(placed.at, noted(mark, text or "", self._extras.of_mark(mark))))


def noted(event: Event, text: str, extra: Json) -> Turn:
    """A turn beside the conversation."""
    return Turn(Role.EVENT, text, timestamp=event.moment.spelled, extra=extra, place=f"{event.place}/data")


def _of_new(losses: Sequence[Loss], fresh: Sequence[Turn], beyond: str | None) -> Iterator[Loss]:
    """The losses of what a request tells for the first time; the rest was told with the requests before."""
    places = {turn.place for turn in fresh}
    for loss in losses:
        if loss.code in _LINKS:
            if beyond is not None and _message(loss.path) >= _message(beyond):
                yield loss
        elif any(loss.path == place or loss.path.startswith(f"{place}/") for place in places):
            yield loss


def _message(place: str) -> int:
    """Which message of its request a place is in."""
    found = _MESSAGE.findall(place)
    return int(found[-1]) if found else 0
