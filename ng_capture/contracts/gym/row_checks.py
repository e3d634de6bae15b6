"""Every rule on a row: its request, its response, the items of both, what links them (contracts.md 4.0)."""

from collections.abc import Iterator, Mapping

from ng_capture.contracts.episode import Json
from ng_capture.contracts.gym.envelope import PARAMETERS
from ng_capture.contracts.gym.item_checks import Broken, broken_item
from ng_capture.contracts.rules import pointer
from ng_capture.records.json_text import object_in, objects_in
from ng_capture.records.rollout_row import BadRow, number, rollout_id_of
from ng_capture.records.usage import count

_PARAMS, _RESPONSE = "/responses_create_params", "/response"
_NOT_NULL = ("tool_choice", "parallel_tool_calls", "tools")
_NUMBERS = ("temperature", "top_p", "max_output_tokens", "max_tool_calls", "top_logprobs")
_FLAGS = ("background", "parallel_tool_calls", "store")
_ENVELOPE: Mapping[str, tuple[type, ...]] = {
    "id": (str,),
    "created_at": (int, float),
    "model": (str,),
    "object": (str,),
    "parallel_tool_calls": (bool,),
    "tool_choice": (str, dict),
    "tools": (list,),
    "output": (list,),
}


def broken_row(row: Json) -> Iterator[Broken]:
    """The rules that a row breaks, but for those on `ng_trajectory`."""
    yield from _identity(row)
    params, response = row.get("responses_create_params"), row.get("response")
    if not isinstance(params, dict):
        yield "row.params", "no object `responses_create_params`", _PARAMS
    else:
        yield from _params(params)
    if not isinstance(response, dict):
        yield "row.response", "no object `response`", _RESPONSE
    else:
        yield from _envelope(response)
        yield from _usage(object_in(response.get("usage")))
    yield from _links(object_in(params), object_in(response))


def _identity(row: Json) -> Iterator[Broken]:
    try:
        named = rollout_id_of(row)
    except BadRow as error:
        yield "row.id", str(error), ""
        return
    if named is None:
        yield "row.unnamed", "neither `_ng_rollout_id` nor task and rollout index", ""
    if number(row.get("reward")) is None:
        yield "row.reward", "no number `reward`", "/reward"


def _params(params: Json) -> Iterator[Broken]:
    for name, value in params.items():
        here = f"{_PARAMS}{pointer(name)}"
        if name not in PARAMETERS and name not in ("input", "instructions", "tools"):
            yield "params.unknown", f"Gym's request has no {name}", here
        elif value is None and name in _NOT_NULL:
            yield "params.null", f"{name} is null, as older rows have it; Gym now refuses that", here
        elif value is not None and not _fits(name, value):
            yield "params.type", f"{name} cannot be {value!r:.40}", here
    yield from _tools(params.get("tools"))
    given = params.get("input")
    if not isinstance(given, str | list):
        yield "params.input", "the input is a text or a list of items", f"{_PARAMS}/input"
        return
    for at, item in enumerate(given if isinstance(given, list) else ()):
        yield from broken_item(item, f"{_PARAMS}/input{pointer(at)}", "input")


def _fits(name: str, value: object) -> bool:
    if name in _NUMBERS:
        return number(value) is not None
    if name in _FLAGS:
        return isinstance(value, bool)
    if name == "stream":
        return value is False
    return not (name in ("model", "instructions", "user") and not isinstance(value, str))


def _tools(tools: object) -> Iterator[Broken]:
    for at, tool in enumerate(tools if isinstance(tools, list) else ()):
        here = f"{_PARAMS}/tools{pointer(at)}"
        if not isinstance(object_in(tool).get("type"), str):
            yield "params.tool", "a tool without a type", here
        elif tool["type"] == "function":
            missing = [name for name in ("name", "parameters", "strict") if name not in tool]
            if missing:
                yield "params.tool", f"a function without {', '.join(missing)}", here


def _envelope(response: Json) -> Iterator[Broken]:
    for name, kinds in _ENVELOPE.items():
        value, here = response.get(name), f"{_RESPONSE}{pointer(name)}"
        if name not in response:
            yield "response.missing", f"no {name}", _RESPONSE
        elif type(value) not in kinds:
            yield "response.type", f"{name} cannot be {value!r:.40}", here
    output = response.get("output")
    for at, item in enumerate(output if isinstance(output, list) else ()):
        yield from broken_item(item, f"{_RESPONSE}/output{pointer(at)}", "output")


def _usage(usage: Json) -> Iterator[Broken]:
    here = f"{_RESPONSE}/usage"
    counts = {name: count(usage.get(name)) for name in ("input_tokens", "output_tokens", "total_tokens")}
    for name, value in counts.items():
        if usage and value is None:
            yield "usage.count", f"{name} is no count", f"{here}/{name}"
    cached = count(object_in(usage.get("input_tokens_details")).get("cached_tokens"))
    asked, made, total = counts.values()
    if cached is not None and asked is not None and cached > asked:
        yield "usage.cached", f"{cached} cached of {asked}", here
    if asked is not None and made is not None and total is not None and total < asked + made:
        yield "usage.total", f"{total} in total, fewer than {asked} and {made}", here


def _links(params: Json, response: Json) -> Iterator[Broken]:
    """Calls and their outputs over both sides, in their order."""
    called, answered = dict[str, str](), set[str]()
    sides = ((params.get("input"), f"{_PARAMS}/input"), (response.get("output"), f"{_RESPONSE}/output"))
    for items, place in sides:
        for at, value in enumerate(items if isinstance(items, list) else ()):
            item, here = object_in(value), f"{place}{pointer(at)}"
            call_id = item.get("call_id")
            if not isinstance(call_id, str):
                continue
            if item.get("type") == "function_call":
                if call_id in called:
                    yield "call.repeated", f"{call_id} was called before", here
                called[call_id] = here
            elif item.get("type") == "function_call_output":
                if call_id not in called:
                    yield "result.unlinked", f"nothing before it called {call_id}", here
                elif call_id in answered:
                    yield "result.repeated", f"{call_id} has an output already", here
                answered.add(call_id)
    for call_id, here in called.items():
        if call_id not in answered:
            yield "call.unanswered", f"{call_id} has no output", here
    yield from _repeated_ids(response)


def _repeated_ids(response: Json) -> Iterator[Broken]:
    seen = set[tuple[str, str]]()
    for at, item in enumerate(objects_in(response.get("output"))):
        item_id = item.get("id")
        if not isinstance(item_id, str):
            continue
        # a call and its output may share one, as some agents write them
        named = (str(item.get("type")), item_id)
        if named in seen:
            yield "item.id_repeated", f"{item_id} is the id of another item", f"{_RESPONSE}/output{pointer(at)}"
        seen.add(named)
