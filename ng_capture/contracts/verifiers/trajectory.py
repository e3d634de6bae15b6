"""The steps of a row's trajectory, each a call of the model with its exact ids, on the turns that they made (6)."""

from collections.abc import Sequence

import msgspec

from ng_capture.contracts.dialects.chat import CHAT
from ng_capture.contracts.dialects.fields import others, text_in
from ng_capture.contracts.episode import Json, ModelCall, Role, Tokens, Turn
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.contracts.sameness import spoken
from ng_capture.contracts.verifiers.numbers import ids_in, log_probs_in
from ng_capture.contracts.verifiers.rules import fault
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import decode_usage

_ARRAYS = ("prompt_ids", "completion_ids", "completion_logprobs")


class Followed(msgspec.Struct, frozen=True):
    """The turns, those of the model with the calls that made them; steps that made none of them are faults."""

    turns: tuple[Turn, ...]
    losses: tuple[Loss, ...] = ()
    faults: tuple[Fault, ...] = ()


def with_calls(turns: Sequence[Turn], trajectory: object, options: Options) -> Followed:
    """Each turn of the model with the step that says the same, in order; a step that says another thing is left out."""
    steps = trajectory if isinstance(trajectory, list) else []
    told, faults, losses = list(turns), list[Fault](), list[Loss]()
    fresh = [(at, spoken(turn)) for at, turn in enumerate(turns) if turn.fresh]
    nth = 0
    for number, value in enumerate(steps):
        step, place = object_in(value), pointer("trajectory", number)
        said = _said(step, options)
        found = next((each for each in range(nth, len(fresh)) if fresh[each][1] == said), None)
        if found is None:
            faults.append(fault("verifiers.trajectory.unmatched", f"step {number} is no turn of the completion", place))
            losses.append(Loss("step_fields_dropped", place, detail="a step that is no turn"))
            continue
        nth, at = found + 1, fresh[found][0]
        told[at], lost = _made(told[at], step, place, options)
        losses += lost
    return Followed(tuple(told), tuple(losses), tuple(faults))


def _said(step: Json, options: Options) -> object:
    """What the model said in a step; None where it said nothing."""
    completion = step.get("completion")
    messages = [{"role": "assistant", "content": completion}] if isinstance(completion, str) else completion
    turns = CHAT.asked({"messages": messages}, options).turns
    return next((spoken(turn) for turn in turns if turn.role == Role.ASSISTANT), None)


def _made(turn: Turn, step: Json, place: str, options: Options) -> tuple[Turn, list[Loss]]:
    call = _call(object_in(step.get("response")), options)
    arrays, losses = object_in(step.get("tokens")), list[Loss]()
    tokens, missing = _tokens(arrays), _missing(arrays)
    if tokens is not None and missing is not None:
        tokens = None
        losses.append(Loss("tokens_incomplete", f"{place}/tokens", detail=missing))
    kept = {
        "tokens": others(arrays, *_ARRAYS, "routed_experts"),
        **(others(step, "prompt", "completion", "response", "tokens") or {}),
    }
    beside = {key: value for key, value in kept.items() if value is not None}
    extra = {**(turn.extra or {}), "ng_capture": {"verifiers": beside}} if beside else turn.extra
    return msgspec.structs.replace(
        turn, call=msgspec.structs.replace(call, tokens=tokens), model_calls=1, extra=extra
    ), losses


def _tokens(arrays: Json) -> Tokens | None:
    """The exact ids of a step; models behind an API have none, and then the lists are empty."""
    if not arrays.get("prompt_ids") and not arrays.get("completion_ids"):
        return None
    prompt, completion = ids_in(arrays.get("prompt_ids")), ids_in(arrays.get("completion_ids"))
    return Tokens(prompt, completion, log_probs_in(arrays.get("completion_logprobs")), arrays.get("routed_experts"))


def _missing(arrays: Json) -> str | None:
    """Why the arrays of a step are not those of an answer, None where they are."""
    mask = arrays.get("completion_mask")
    if isinstance(mask, list) and not all(mask):
        return "ids of the completion that the model did not generate"
    sound = (ids_in(arrays.get("prompt_ids")), ids_in(arrays.get("completion_ids")))
    log_probs = arrays.get("completion_logprobs")
    if None in sound or (log_probs is not None and log_probs_in(log_probs) is None):
        return "what is no id or no log probability"
    return None


def _call(response: Json, options: Options) -> ModelCall:
    """What the response says of its call: one of Chat Completions, or the library's own record of one."""
    if isinstance(response.get("choices"), list):
        answered = CHAT.answered(response, options).turn
        if answered is not None and answered.call is not None:
            return answered.call
    message = object_in(response.get("message"))
    return ModelCall(
        response_id=text_in(response, "id"),
        model=text_in(response, "model"),
        dialect=CHAT.name,
        finish_reason=text_in(message, "finish_reason") or text_in(response, "finish_reason"),
        usage=decode_usage(object_in(response.get("usage"))),
    )
