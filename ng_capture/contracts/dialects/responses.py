"""The Responses dialect: the turns of a request, the turn of a response (contracts.md 3.4, 4.0)."""

import msgspec

from ng_capture.contracts.dialects.fields import others
from ng_capture.contracts.dialects.interface import Answered, Asked, Dialect
from ng_capture.contracts.episode import Json, ModelCall, Role, Tool, Turn
from ng_capture.contracts.interface import Options, Thinking
from ng_capture.contracts.items.parts import without
from ng_capture.contracts.items.turns import Grouped, grouped
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import object_in, objects_in
from ng_capture.records.usage import UNKNOWN_USAGE, decode_usage

NAME = "responses"
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS = {"input_tokens_details": "cached_tokens", "output_tokens_details": "reasoning_tokens"}


def asked(request: Json, options: Options) -> Asked:
    """The turns of a request: its instructions, then its input; what a model made in it is history, thus copied."""
    given = input_turns(request, "", splits_think(options))
    return Asked(
        (*instructions(request, ""), *given.turns),
        tools(request.get("tools")),
        without(request, "input", "instructions", "tools"),
        given.losses,
    )


def answered(response: Json, options: Options) -> Answered:
    """All items of a response as one turn, since one call made them."""
    output = response.get("output")
    items = output if isinstance(output, list) else []
    made = grouped(items, "/output", bounds="one", split_think=splits_think(options))
    call = model_call(response)
    if not made.turns and call.usage == UNKNOWN_USAGE:
        return Answered(None, made.losses)
    turn = made.turns[0] if made.turns else Turn(Role.ASSISTANT, place="/output")
    tokens = turn.call.tokens if turn.call is not None else None
    whole = msgspec.structs.replace(call, tokens=tokens)
    return Answered(msgspec.structs.replace(turn, call=whole, model_calls=1, copied=False), made.losses)


def instructions(request: Json, place: str) -> tuple[Turn, ...]:
    """The turn of the instructions, where there are any; `place` is the pointer of the request."""
    text = request.get("instructions")
    if not isinstance(text, str):
        return ()
    return (Turn(Role.SYSTEM, text, extra={"role": "instructions"}, place=f"{place}/instructions"),)


def input_turns(request: Json, place: str, split_think: bool) -> Grouped:
    """The turns of the input of a request; what a model made in it is history."""
    given, place = request.get("input"), f"{place}/input"
    if isinstance(given, str):
        return Grouped((Turn(Role.USER, given, place=place),))
    if isinstance(given, list):
        return grouped(given, place, fresh_from=len(given), split_think=split_think)
    return Grouped() if given is None else Grouped(losses=(Loss("content_type_unsupported", place),))


def tools(value: object) -> tuple[Tool, ...] | None:
    """The tools of a request or a response; None where it names no list of them."""
    if not isinstance(value, list):
        return None
    return tuple(_tool(tool) for tool in objects_in(value))


def _tool(value: Json) -> Tool:
    name = value.get("name")
    return Tool(name if isinstance(name, str) else None, value, NAME, function=value.get("type") == "function")


def model_call(response: Json) -> ModelCall:
    """What a response says of the call that made it, but for tokens."""
    reason = object_in(response.get("incomplete_details")).get("reason")
    usage = object_in(response.get("usage"))
    return ModelCall(
        response_id=_text(response.get("id")),
        model=_text(response.get("model")),
        dialect=NAME,
        finish_reason=_text(reason),
        usage=decode_usage(usage),
        usage_extra=_other_counts(usage) or None,
    )


def _other_counts(usage: Json) -> Json:
    """The counts of a usage that have no name of ours, in the details where they stand."""
    told = others(usage, *_COUNTS, *_DETAILS) or {}
    details = {name: others(object_in(usage.get(name)), known) for name, known in _DETAILS.items()}
    return {**told, **{name: left for name, left in details.items() if left is not None}}


def splits_think(options: Options) -> bool:
    """True where think tags become reasoning: only when asked, since a server of this dialect has done it itself."""
    return options.thinking == Thinking.SPLIT


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


RESPONSES = Dialect(NAME, asked, answered)
