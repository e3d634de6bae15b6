"""The turns of an actor with the results of its tools and the agents that it called (contracts.md 2.4)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from ng_capture.contracts.atof.callers import Caller
from ng_capture.contracts.atof.extras import OURS, Extras, with_ours
from ng_capture.contracts.atof.links import Linked, Place
from ng_capture.contracts.atof.results import as_told, result_of, retold
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.atof.telling import noted
from ng_capture.contracts.atof.texts import note_text
from ng_capture.contracts.atof.told import Ran, Said, Told
from ng_capture.contracts.episode import Json, Role, SubagentRef, ToolCall, ToolResult, Turn
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.sameness import parsed
from ng_capture.records.json_text import encode_json, object_in


class Called(msgspec.Struct, frozen=True):
    """An agent that was called: where its conversation is, its first event, what began it, None where nothing tells."""

    ref: SubagentRef
    caller: Caller | None
    at: int
    timestamp: str
    place: str


class Assembled(msgspec.Struct, frozen=True):
    """The turns of an actor, whole, and what was lost in putting them together."""

    turns: tuple[Turn, ...]
    losses: tuple[Loss, ...]


def assemble(told: Told, linked: Sequence[Linked], called: Sequence[Called], extras: Extras) -> Assembled:
    """The turns that an actor's events tell, in their order."""
    assembly = _Assembly(told, called, extras)
    assembly.answer([(each.ran, each.place) for each in linked if each.place is not None])
    assembly.run([each.ran for each in linked if each.place is None])
    assembly.call_apart([each for each in called if each.caller is None])
    losses = (each.loss for each in linked if each.loss is not None)
    return Assembled(assembly.turns, (*losses, *assembly.losses))


class _Assembly:
    """Turns that get results, and turns that are added."""

    def __init__(self, told: Told, called: Sequence[Called], extras: Extras) -> None:
        self._told, self._extras = told, extras
        self._retold = retold(told)
        self._results = defaultdict[int, list[ToolResult]](list)
        self._call_extras, self._added = dict[Place, Json](), list[Said]()
        self._refs = defaultdict[Caller, list[SubagentRef]](list)
        for each in called:
            if each.caller is not None:
                self._refs[each.caller].append(each.ref)
        self.losses = list[Loss]()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns, each with its results, in their order."""
        whole = [Said(said.at, self._whole(at, said)) for at, said in enumerate(self._told.said)]
        return tuple(said.turn for said in sorted((*whole, *self._added), key=lambda said: said.at))

    def answer(self, runs: Sequence[tuple[Ran, Place]]) -> None:
        """Results of calls: in the order in which the model was told them, then as the tools ended."""
        ran = defaultdict[Place, list[Ran]](list)
        for each, place in runs:
            ran[place].append(each)
        began = [caller.place for caller in self._refs if caller.place is not None]
        for place in dict.fromkeys((*self._retold.by_call, *ran, *began)):
            call = self._told.said[place.turn].turn.calls[place.call]
            refs = self._refs[Caller(place=place)]
            results = [result for each in ran[place] for result in self._came(each, call, refs)]
            told = self._retold.by_call.get(place)
            if not results and (told is not None or refs):
                results = [ToolResult(call.call_id, None, subagents=tuple(refs))]
            if results and told is not None:
                # of several attempts the model was told the last one
                results[-1] = as_told(results[-1], told.result)
            self._results[place.turn] += results
            if ran[place]:
                self._call_extras[place] = self._extra_of(ran[place][-1], call)

    def _came(self, ran: Ran, call: ToolCall, refs: Sequence[SubagentRef]) -> Iterator[ToolResult]:
        """What came of a tool that answers a call; nothing of one that never ended and began nothing."""
        began = (*self._refs[Caller(scope=ran.scope.uuid)], *refs)
        if ran.scope.end is not None or began:
            yield result_of(ran, call.call_id, began)

    def run(self, runs: Sequence[Ran]) -> None:
        """Tools that no model called: those in an application's step are that step's, others stand beside."""
        inside = defaultdict[str, list[Ran]](list)
        for ran in runs:
            around = self._extras.stream.around(ran.scope.parent)
            function = next((scope for scope in around if scope.category in ("function", "agent")), None)
            if function is not None and function.category == "function":
                inside[function.uuid].append(ran)
            elif ran.scope.end is not None or self._refs[Caller(scope=ran.scope.uuid)]:
                result = result_of(ran, ran.call_id, self._refs[Caller(scope=ran.scope.uuid)])
                self._stand_beside(ran.at, ran.scope, result)
        ended = {scope.uuid: at for at, scope in self._told.functions}
        for uuid, own in inside.items():
            self._dispatch(ended.get(uuid, own[-1].at), self._extras.stream.scopes[uuid], own)
        for at, scope in self._told.functions:
            if scope.uuid not in inside:
                self._note(at, scope)
        for each in self._retold.unlinked:
            self._hang_on(each.at, each.result)

    def call_apart(self, called: Sequence[Called]) -> None:
        """Agents that no call began: events that refer to them."""
        for each in called:
            result = ToolResult(None, None, subagents=(each.ref,))
            turn = Turn(Role.EVENT, "", results=(result,), timestamp=each.timestamp, place=each.place)
            self._added.append(Said(each.at, turn))
            self.losses.append(Loss("subagent_parent_unknown", each.place))

    def _whole(self, at: int, said: Said) -> Turn:
        calls = tuple(
            msgspec.structs.replace(call, extra={**(call.extra or {}), **self._call_extras[Place(at, number)]})
            if Place(at, number) in self._call_extras
            else call
            for number, call in enumerate(said.turn.calls)
        )
        results = (*said.turn.results, *self._results[at])
        refs = self._refs[Caller(scope=said.scope)] if said.scope is not None else []
        if refs:
            first = results[0] if results else ToolResult(None, None)
            results = (msgspec.structs.replace(first, subagents=tuple(refs)), *results[1:])
        return msgspec.structs.replace(said.turn, calls=calls, results=results)

    def _extra_of(self, ran: Ran, call: ToolCall) -> Json:
        """Where and when a tool ran; with what, where that is not what the model asked for."""
        extra = self._extras.of_scope(ran.scope, invocation_id=call.call_id)
        differs = ran.arguments is not None and parsed(_call_of(ran)) != parsed(call)
        return with_ours(extra, arguments_run=ran.arguments if differs else None) or {}

    def _stand_beside(self, at: int, tool: Scope, result: ToolResult) -> None:
        """A result whose call is not there: on the last turn of the model, else an event of its own."""
        self.losses.append(Loss("output_unlinked", tool.told.place))
        extra = self._extras.of_step(tool)
        ours = object_in((result.extra or {}).get(OURS))
        if not self._hang_on(at, msgspec.structs.replace(result, extra=with_ours(extra, **ours))):
            event = tool.end or tool.told
            turn = Turn(Role.EVENT, "", results=(result,), timestamp=event.moment.spelled, extra=extra)
            self._added.append(Said(at, msgspec.structs.replace(turn, place=event.place)))

    def _hang_on(self, at: int, result: ToolResult) -> bool:
        """Gives a result to the last turn of the model before a place; False where there is none."""
        turns = [
            number for number, said in enumerate(self._told.said) if said.at < at and said.turn.role == Role.ASSISTANT
        ]
        if turns:
            self._results[turns[-1]].append(result)
        return bool(turns)

    def _dispatch(self, at: int, function: Scope, runs: Sequence[Ran]) -> None:
        """A step that no model made: an application's own calls of tools (2.2, 7)."""
        event = function.end or runs[-1].scope.told
        calls = [_call_of(ran) for ran in runs]
        refs = [self._refs[Caller(scope=ran.scope.uuid)] for ran in runs]
        came = [at for at, ran in enumerate(runs) if ran.scope.end is not None or refs[at]]
        extra = with_ours(self._extras.of_step(function), output=function.end.data if function.end else None)
        turn = Turn(
            Role.ASSISTANT,
            calls=tuple(
                msgspec.structs.replace(call, extra=self._extra_of(ran, call))
                for ran, call in zip(runs, calls, strict=True)
            ),
            results=tuple(result_of(runs[at], calls[at].call_id, refs[at]) for at in came),
            model_calls=0,
            timestamp=event.moment.spelled,
            extra=extra,
            place=event.place,
        )
        self._added.append(Said(at, turn))
        self.losses.append(Loss("no_model_call", turn.place))

    def _note(self, at: int, function: Scope) -> None:
        assert function.end is not None
        text = note_text(function.end.data)
        if text is None:
            self.losses.append(Loss("scope_dropped", function.end.place, detail=function.category))
        else:
            self._added.append(Said(at, noted(function.end, text, self._extras.of_step(function))))


def _call_of(ran: Ran) -> ToolCall:
    """A tool that ran as a call of it; one that names no call is named by its own uuid."""
    arguments = {} if ran.arguments is None else ran.arguments
    return ToolCall(ran.call_id or ran.scope.uuid, ran.scope.name, encode_json(arguments).decode())
