"""A request and its response as one conversation: history, then what the model made (contracts.md 3.4)."""

from collections.abc import Callable, Sequence

import msgspec

from ng_capture.contracts.dialects.responses import input_turns, instructions, model_call, splits_think, tools
from ng_capture.contracts.episode import Json, ModelCall, Tool, Turn
from ng_capture.contracts.interface import Options
from ng_capture.contracts.items.parts import without
from ng_capture.contracts.items.pieces import ANSWERED_CALLS
from ng_capture.contracts.items.turns import HISTORY_ORDER, ORDER, OUTPUT_FROM, TOOLS_FROM, Grouped, grouped
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.responses.told import Told
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import UNKNOWN_USAGE, Usage, total_usage


class Side(msgspec.Struct, frozen=True):
    """A request or a response, and its pointer in the document."""

    value: Json
    place: str


NOTHING = Side({}, "")


class Conversation(msgspec.Struct, frozen=True):
    """All turns, and what could not be told of them.

    `order` and `history` are those of items where turns change it (`Grouped`), `output_from` is the first turn of the
    output where that is not the first fresh one.
    """

    turns: tuple[Turn, ...]
    losses: tuple[Loss, ...]
    order: tuple[int, ...]
    call: ModelCall
    history: tuple[int, ...] = ()
    output_from: int | None = None

    @property
    def model(self) -> str | None:
        """The model of the response, else the one that all steps name."""
        names = {turn.call.model for turn in self.turns if turn.fresh and turn.call is not None and turn.call.model}
        return self.call.model or (names.pop() if len(names) == 1 else None)


def conversation_of(
    request: Side, response: Side, options: Options, tell: Callable[[Grouped], Told] | None = None
) -> Conversation:
    """The turns of both sides; `tell` knows more of the output than the order of its items."""
    split_think = splits_think(options)
    given = input_turns(request.value, request.place, split_think)
    output = response.value.get("output")
    unread = () if output is None or isinstance(output, list) else (Loss("content_type_unsupported", "/output"),)
    made = grouped(output if isinstance(output, list) else (), f"{response.place}/output", split_think=split_think)
    told = Told.inferred_from(made) if tell is None else tell(made)
    before = (*instructions(request.value, request.place), *given.turns)
    conversation = completed(before, (*given.losses, *unread), told, response)
    output_from = None if not told.turns or told.turns[0].fresh else len(before)
    return msgspec.structs.replace(conversation, history=given.history, output_from=output_from)


def completed(before: Sequence[Turn], losses: Sequence[Loss], told: Told, response: Side) -> Conversation:
    """The turns before an output and those in it, with what is told of them as a whole."""
    call = model_call(response.value)
    turns, mismatch = _counted((*before, *told.turns), call, f"{response.place}/usage")
    return Conversation(
        turns, (*losses, *told.losses, *_as_a_whole(turns, told), *mismatch), told.order, call, told.history
    )


def _as_a_whole(turns: Sequence[Turn], told: Told) -> list[Loss]:
    losses = list[Loss]()
    fresh = [turn for turn in turns if turn.fresh]
    if told.inferred:
        losses.append(Loss("step_boundary_inferred", fresh[0].place, told.inferred))
    for turn in fresh:
        answered = {result.call_id for result in turn.results}
        asked = [call for call in turn.calls if call.kind in ANSWERED_CALLS and call.call_id not in answered]
        if asked:
            losses.append(Loss("call_without_output", turn.place, len(asked)))
    copied = [turn for turn in turns if turn.copied]
    if copied:
        losses.append(Loss("copied_context", copied[0].place, len(copied)))
    return losses


def _counted(turns: tuple[Turn, ...], call: ModelCall, place: str) -> tuple[tuple[Turn, ...], list[Loss]]:
    """The turns with what the response used, where one step made it all; a sum is never divided."""
    fresh = [turn for turn in turns if turn.fresh]
    used, sums = call.usage, total_usage(turn.call.usage for turn in fresh if turn.call is not None)
    losses = list[Loss]()
    if not used.partial and not sums.partial and _pair(used) != _pair(sums):
        losses.append(Loss("usage_mismatch", place, detail=f"{_told(used)}; the calls: {_told(sums)}"))
    if used == UNKNOWN_USAGE or len(fresh) != 1 or sums != UNKNOWN_USAGE:
        return turns, losses
    one = fresh[0]
    whole = msgspec.structs.replace(one.call or ModelCall(), usage=used, usage_extra=call.usage_extra)
    return tuple(msgspec.structs.replace(each, call=whole) if each is one else each for each in turns), losses


def _pair(usage: Usage) -> tuple[int | None, int | None]:
    return usage.tokens_in, usage.tokens_out


def _told(usage: Usage) -> str:
    return f"{usage.tokens_in} in, {usage.tokens_out} out"


def parameters_in(request: Json) -> Json | None:
    """The parameters of a request but for its turns and tools, as far as these could be read."""
    offered = request.get("tools")
    read = {
        "input": True,
        "instructions": request.get("instructions") is None or isinstance(request["instructions"], str),
        "tools": offered is None or (isinstance(offered, list) and all(isinstance(tool, dict) for tool in offered)),
    }
    return without(request, *(name for name, known in read.items() if known)) or None


def tools_in(request: Json, response: Json) -> tuple[Tool, ...] | None:
    """The tools that were offered: those of the request, else those that the response names."""
    return tools(request.get("tools")) or tools(response.get("tools")) or None


def thread_extra(conversation: Conversation, request: Json, response: Json) -> Json:
    """What a thread keeps for who writes items again."""
    kept = dict[str, object]()
    if conversation.order:
        kept[ORDER] = list(conversation.order)
    if conversation.history:
        kept[HISTORY_ORDER] = list(conversation.history)
    if conversation.output_from is not None:
        kept[OUTPUT_FROM] = conversation.output_from
    if not tools(request.get("tools")) and tools(response.get("tools")):
        kept[TOOLS_FROM] = "response"
    return {"ng_capture": kept} if kept else {}


def envelope_in(response: Json) -> Json | None:
    """What a response says besides its output; None where there is no response."""
    return without(response, "output") if response else None


def side_of(value: object, place: str) -> Side:
    """A side of a document, empty where it is no object."""
    return Side(object_in(value), place)
