"""What an actor said and was told, event by event (contracts.md 2.2, 2.4)."""

from collections.abc import Iterator

from ng_capture.contracts.atof.actors import Actor, Placed
from ng_capture.contracts.atof.events import Event, Phase
from ng_capture.contracts.atof.extras import Extras
from ng_capture.contracts.atof.model_calls import ModelCalls
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.atof.texts import boundary_text, note_text, summary_text
from ng_capture.contracts.atof.told import Ran, Said, Told
from ng_capture.contracts.episode import Json, Role, ToolResult, Turn
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import object_in

_MARK_ROLES = {
    **{role.value: role for role in (Role.SYSTEM, Role.DEVELOPER, Role.USER, Role.ASSISTANT)},
    "agent": Role.ASSISTANT,
}


def tell(actor: Actor, extras: Extras, options: Options) -> Told:
    """What an actor's events tell."""
    return _Telling(actor, extras, options).tell()


class _Telling:
    def __init__(self, actor: Actor, extras: Extras, options: Options) -> None:
        self._actor, self._extras = actor, extras
        self._calls = ModelCalls(extras, options)
        self._runs, self._functions, self._losses = dict[str, Ran](), list[tuple[int, Scope]](), list[Loss]()
        self._calls_models = any(
            placed.event.category == "llm" and placed.event.phase != Phase.MARK for placed in actor.events
        )

    def tell(self) -> Told:
        said = [each for placed in self._actor.events for each in self._said(placed)]
        calls = self._calls
        losses = (*calls.losses, *self._losses)
        runs = tuple(self._runs.values())
        return Told(said, runs, self._functions, calls.results, calls.first, calls.failed, losses)

    def _said(self, placed: Placed) -> Iterator[Said]:
        event = placed.event
        if event.phase == Phase.MARK:
            turns = self._mark(event)
        else:
            turns = self._scope(placed, self._extras.stream.scopes[event.uuid], event.phase == Phase.START)
        yield from (Said(placed.at, turn, event.uuid) for turn in turns)

    def _scope(self, placed: Placed, scope: Scope, starts: bool) -> Iterator[Turn]:
        category = scope.category
        if category == "llm":
            yield from self._calls.ask(placed.at, scope) if starts else self._answer(scope)
        elif category == "tool":
            since = self._runs[scope.uuid].since if scope.uuid in self._runs else placed.at
            self._runs[scope.uuid] = Ran(since, placed.at, scope)
        elif category == "agent" or scope.uuid == self._actor.key:
            yield from self._boundary(placed.event, scope, starts)
        elif not starts:
            yield from self._ended(placed, scope)

    def _ended(self, placed: Placed, scope: Scope) -> Iterator[Turn]:
        match scope.category:
            case "context":
                yield self._context(placed.event, scope)
            case "function":
                self._functions.append((placed.at, scope))
            case _ if (text := note_text(placed.event.data)) is not None:
                yield noted(placed.event, text, self._extras.of_step(scope))
            case _:
                self._losses.append(Loss("scope_dropped", placed.event.place, detail=scope.category))

    def _answer(self, scope: Scope) -> Iterator[Turn]:
        turn = self._calls.answer(scope)
        if turn is not None:
            yield turn

    def _context(self, end: Event, scope: Scope) -> Turn:
        """A change of what the model sees, as ATIF has it (1.4); what it was told of that is in the next request."""
        summary = summary_text(end.data)
        management = {key: scope.profile.get(key) for key in ("type", "boundary")}
        if management["boundary"] == "replace":
            self._calls.rewrite()
        extra: dict[str, object] = {"context_management": management}
        if end.data_schema is not None:
            extra["data_schema"] = end.data_schema
        results = (ToolResult(None, summary),) if summary is not None else ()
        text = scope.name or "context_management"
        return Turn(Role.EVENT, text, results=results, timestamp=end.moment.spelled, extra=extra, place=end.place)

    def _boundary(self, event: Event, scope: Scope, starts: bool) -> Iterator[Turn]:
        """What a workflow was given and what it gave, where no call in it tells."""
        text = None if self._calls_models else boundary_text(event.data)
        if text is not None:
            role, extra = Role.USER if starts else Role.ASSISTANT, self._extras.of_scope(scope, until=event)
            yield Turn(role, text, timestamp=event.moment.spelled, extra=extra, place=f"{event.place}/data")

    def _mark(self, mark: Event) -> Iterator[Turn]:
        """A mark: a turn where it names who speaks, else a note; with nothing to say it is dropped (2.2, 9)."""
        data, extra = object_in(mark.data), self._extras.of_mark(mark)
        role = _MARK_ROLES.get(str(data.get("role")))
        if role is not None:
            text = note_text(next((data[key] for key in ("content", "message") if data.get(key) is not None), None))
            turn = Turn(role, text or "", timestamp=mark.moment.spelled, extra=extra, place=f"{mark.place}/data")
            self._calls.announce(turn)
            yield turn
        elif mark.data is None:
            self._losses.append(Loss("mark_dropped", mark.place, detail=mark.name or None))
        else:
            yield noted(mark, note_text(mark.data) or "{}", extra)


def noted(event: Event, text: str, extra: Json | None) -> Turn:
    """A turn beside the conversation."""
    return Turn(Role.EVENT, text, timestamp=event.moment.spelled, extra=extra, place=f"{event.place}/data")
