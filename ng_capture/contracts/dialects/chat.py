"""Chat Completions: messages of requests and choices of responses to turns (contracts.md 4.5, 4.6)."""

from collections.abc import Iterator, Mapping

import msgspec

from ng_capture.contracts.dialects.chat_parameters import parameters_of, tools_of
from ng_capture.contracts.dialects.chat_parts import content_of, parts_of, rests_of
from ng_capture.contracts.dialects.fields import arguments_text, opaque, others, text_in, tokens_in
from ng_capture.contracts.dialects.history import History
from ng_capture.contracts.dialects.interface import Answered, Asked, Dialect
from ng_capture.contracts.dialects.thinking import cut_think_tags
from ng_capture.contracts.episode import (
    Content,
    Json,
    ModelCall,
    Opaque,
    Role,
    Thought,
    Tokens,
    ToolCall,
    ToolResult,
    Turn,
)
from ng_capture.contracts.interface import Options
from ng_capture.contracts.items.parts import without
from ng_capture.contracts.items.tokens import array_of
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import pointer
from ng_capture.records.json_text import decode_exact, object_in, objects_in
from ng_capture.records.usage import decode_usage

NAME = "chat"
REASONING_FIELDS = ("reasoning_content", "reasoning")
FIELDS = "fields"
"""The key of `Thought.item` under which stand the fields of a message that held it."""
TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts")
LEGACY_CALL = ["function_call"]
"""What that key holds of a call of before tools."""
_ROLES = {role.value: role for role in Role if role != Role.EVENT}
_READ = ("role", "type", "content", *REASONING_FIELDS, "refusal", "audio", "tool_calls", "function_call", *TOKEN_FIELDS)
_TOLD = ("id", "object", "model", "choices", "usage", "prompt_token_ids")
_CHOICE = ("index", "message", "finish_reason", "token_ids", *TOKEN_FIELDS)
_COUNTED = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
_COUNTED_DETAILS = {"prompt_tokens_details": ("cached_tokens",), "completion_tokens_details": ("reasoning_tokens",)}


def asked(request: Json, options: Options) -> Asked:
    """The turns of a request; those of the assistant are history, not output."""
    history, losses = History(), list[Loss]()
    messages = request.get("messages")
    for at, value in enumerate(messages if isinstance(messages, list) else ()):
        place = pointer("messages", at)
        message = object_in(value)
        if message.get("role") in ("tool", "function"):
            history.answer(_result(message), place, text_in(message, "name") if message["role"] == "function" else None)
        else:
            turn, found = message_turn(value, options, place)
            history.say(turn)
            losses += found
    return Asked(history.turns, tools_of(request), parameters_of(request), (*losses, *history.losses))


def answered(response: Json, options: Options) -> Answered:
    """The turn of the first choice."""
    choices = list(objects_in(response.get("choices")))
    if not choices:
        return Answered(None)
    choice = choices[0]
    message = {"role": "assistant", **object_in(choice.get("message"))}
    place = pointer("choices", 0, "message")
    turn, losses = message_turn(message, options, place, _call(response, choice))
    beside = {"envelope": without(response, *_TOLD), "choice": without(choice, *_CHOICE)}
    item = {**(turn.item or {}), **{key: rest for key, rest in beside.items() if rest}}
    turn = msgspec.structs.replace(turn, item=item or None)
    if len(choices) > 1:
        losses = (*losses, Loss("choice_dropped", pointer("choices", 1), len(choices) - 1))
    return Answered(turn, losses)


CHAT = Dialect(NAME, asked, answered)


def message_turn(
    value: object, options: Options, place: str, call: ModelCall | None = None
) -> tuple[Turn, tuple[Loss, ...]]:
    """The turn of any message but a tool's; `call` is what is known of the call that made it, else it is history."""
    message = object_in(value)
    role = _ROLES.get(str(message.get("role")))
    if role is None:
        return Turn(Role.USER, (opaque("message", value),), place=place), ()
    thoughts, content, losses = list(_thoughts(message)), _content(message), tuple[Loss, ...]()
    rests = rests_of(message.get("content"))
    if role == Role.ASSISTANT and isinstance(content, str):
        cut = cut_think_tags(content, options.thinking, chat=True)
        if cut.thought is not None:
            thoughts.append(cut.thought)
            losses = (Loss("think_tags_split", f"{place}/content", len(cut.thought.summary), cut.offsets),)
            content = cut.text or None
    tokens = tokens_in(message)
    turn = Turn(
        role=role,
        content=content,
        thoughts=tuple(thoughts),
        calls=tuple(_calls(message)),
        call=call or (ModelCall(dialect=NAME, tokens=tokens) if tokens is not None else None),
        copied=role == Role.ASSISTANT and call is None,
        model_calls=None if call is None else 1,
        item={**(others(message, *_READ) or {}), **({} if rests is None else {"content": rests})} or None,
        place=place,
    )
    return turn, losses


def _thoughts(message: Json) -> Iterator[Thought]:
    """Reasoning that has a field of its own; fields of one text are one."""
    told: dict[str, list[str]] = {}
    for field in REASONING_FIELDS:
        text = text_in(message, field)
        if text is not None:
            told.setdefault(text, []).append(field)
    for text, fields in told.items():
        yield Thought(summary=(text,), item={FIELDS: fields})


def _content(message: Json) -> Content | None:
    content, refusal, audio = message.get("content"), text_in(message, "refusal"), message.get("audio")
    if refusal is None and not isinstance(audio, dict):
        return content_of(content)
    parts = list(parts_of(content))
    if refusal is not None:
        parts.append(Opaque("refusal", {"type": "refusal", "refusal": refusal}))
    if isinstance(audio, dict):
        parts.append(Opaque("audio", audio))
    return tuple(parts)


def _calls(message: Json) -> Iterator[ToolCall]:
    calls = message.get("tool_calls")
    for value in calls if isinstance(calls, list) else ():
        call = _decoded(value) if isinstance(value, str) else object_in(value)
        yield tool_call(call)
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        name = text_in(legacy, "name") or ""
        yield ToolCall(None, name, arguments_text(legacy.get("arguments")), item={FIELDS: LEGACY_CALL})


def tool_call(call: Json) -> ToolCall:
    """A call of a function, or of a custom tool; as a bare object of name and arguments, as some engines write it."""
    custom = call.get("type") == "custom"
    told = object_in(call.get("custom" if custom else "function")) or call
    return ToolCall(
        call_id=text_in(call, "id"),
        name=text_in(told, "name") or "",
        arguments=arguments_text(told.get("input" if custom else "arguments")),
        kind="custom_tool_call" if custom else "function",
        item=others(call, "id", "type", "function", "custom", "name", "arguments", "input"),
    )


def _decoded(text: str) -> Json:
    """A call that stands in its list as JSON text, as verifiers write it (contracts.md 6)."""
    try:
        return object_in(decode_exact(text.encode("utf-8", "surrogatepass")))
    except ValueError:
        return {"arguments": text}


def _result(message: Json) -> ToolResult:
    """A tool's message; the role of one of before tools is kept."""
    rests = rests_of(message.get("content"))
    rest = (
        others(message, "content", "tool_call_id", "type", *(["role"] if message.get("role") == "tool" else [])) or {}
    )
    return ToolResult(
        call_id=text_in(message, "tool_call_id"),
        content=content_of(message.get("content")),
        item={**rest, **({} if rests is None else {"content": rests})} or None,
    )


def _call(response: Json, choice: Json) -> ModelCall:
    usage = object_in(response.get("usage"))
    return ModelCall(
        response_id=text_in(response, "id"),
        model=text_in(response, "model"),
        dialect=NAME,
        finish_reason=text_in(choice, "finish_reason"),
        usage=decode_usage(usage),
        usage_extra=_uncounted(usage),
        tokens=_tokens(response, choice),
    )


def _tokens(response: Json, choice: Json) -> Tokens | None:
    """The ids as the model servers of Gym write them, or as vLLM does where those are not all there."""
    tokens = tokens_in(object_in(choice.get("message")), choice, response)
    return tokens if tokens is not None and tokens.complete else _served(response, choice) or tokens


def _served(response: Json, choice: Json) -> Tokens | None:
    """The ids as vLLM serves them: those of the prompt on the response or the choice, of the answer on the choice."""
    generation = array_of(choice.get("token_ids"), int)
    if generation is None:
        return None
    prompts = (array_of(each.get("prompt_token_ids"), int) for each in (choice, response))
    told = [entry.get("logprob") for entry in objects_in(object_in(choice.get("logprobs")).get("content"))]
    return Tokens(next(filter(None, prompts), None), generation, array_of(told, int, float) or None)


def _uncounted(usage: Mapping[str, object]) -> Json | None:
    """The counts that have no name of ours."""
    told = dict(others(usage, *_COUNTED, *_COUNTED_DETAILS) or {})
    for field, known in _COUNTED_DETAILS.items():
        rest = others(object_in(usage.get(field)), *known)
        if rest:
            told[field] = rest
    return told or None
