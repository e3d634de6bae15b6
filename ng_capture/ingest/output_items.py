"""What an answer says as the items of a Responses output, without token fields (capture-files.md 2.1)."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.ingest.evidence.answers import Answer
from ng_capture.records.json_text import encode_json, object_in, objects_in, printable

Item = Mapping[str, object]
_TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts")
_TEXTS = ("text", "generated_text", "content")


class Output(msgspec.Struct, frozen=True, eq=False):
    """The items, and which of them carried the tokens; None where there are none."""

    items: Sequence[Item]
    carrier: int | None


def output_of(answer: Answer, carrier: int | None) -> Output:
    """The output of one answer; `carrier` is the item that token fields were read from, else it is the last one."""
    items = [without_tokens(item) for item in _items(answer)]
    if carrier is None or not 0 <= carrier < len(items):
        carrier = len(items) - 1 if items else None
    return Output(items, carrier)


def without_tokens(item: Item) -> Item:
    """The item as a record keeps it: its tokens have fields of their own there."""
    return {key: value for key, value in item.items() if key not in _TOKEN_FIELDS}


def as_text(value: object) -> object:
    """The value with lone surrogates spelled out: a record is UTF-8."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {as_text(key): as_text(member) for key, member in value.items()}
    return [as_text(member) for member in value] if isinstance(value, list) else value


def _items(answer: Answer) -> Iterator[Item]:
    if answer.choice is answer.response and isinstance(answer.response.get("output"), list):
        yield from objects_in(answer.response["output"])
    elif answer.message:
        yield from _of_message(answer.message)
    elif isinstance(answer.choice.get("content"), list):
        yield from _of_blocks(answer.choice["content"])
    else:
        text = next((told for key in _TEXTS if isinstance(told := answer.choice.get(key), str)), "")
        yield from _message([text])


def _of_message(message: Item) -> Iterator[Item]:
    """A chat message: its reasoning, its text, its calls."""
    reasoning = next(
        (told for key in ("reasoning_content", "reasoning") if isinstance(told := message.get(key), str) and told), ""
    )
    yield from _reasoning(reasoning)
    content = message.get("content")
    yield from _message([content] if isinstance(content, str) else _texts(content))
    for call in objects_in(message.get("tool_calls")):
        function = object_in(call.get("function"))
        yield _call(call.get("id"), function.get("name"), function.get("arguments"))


def _of_blocks(content: object) -> Iterator[Item]:
    """The content blocks of a message of the Messages API."""
    for block in objects_in(content):
        if isinstance(told := block.get("thinking"), str):
            yield from _reasoning(told)
    yield from _message(_texts(content))
    for block in objects_in(content):
        if block.get("type") == "tool_use":
            yield _call(block.get("id"), block.get("name"), block.get("input"))


def _texts(content: object) -> list[str]:
    return [told for block in objects_in(content) if isinstance(told := block.get("text"), str)]


def _reasoning(text: str) -> Iterator[Item]:
    if text:
        yield {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def _message(texts: Sequence[str]) -> Iterator[Item]:
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts if text]
    if parts:
        yield {"type": "message", "role": "assistant", "status": "completed", "content": parts}


def _call(call_id: object, name: object, arguments: object) -> Item:
    text = arguments if isinstance(arguments, str) else encode_json({} if arguments is None else arguments).decode()
    return {
        "type": "function_call",
        "call_id": call_id if isinstance(call_id, str) else "",
        "name": name if isinstance(name, str) else "",
        "arguments": text,
    }
