"""Gemini's generateContent in the words of Chat Completions: no API of ours speaks it, but runtimes record it (2.2)."""

from collections.abc import Iterator

from ng_capture.contracts.dialects.fields import text_in
from ng_capture.contracts.dialects.media import data_url
from ng_capture.contracts.episode import Json
from ng_capture.records.json_text import encode_json, object_in, objects_in
from ng_capture.records.usage import count

_TURNS = ("contents", "systemInstruction", "system_instruction", "tools")
_FINISHES = {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter", "RECITATION": "content_filter"}


def gemini_request(request: Json) -> Json:
    """The request as one of chat; other fields stay as they are."""
    told: dict[str, object] = {key: value for key, value in request.items() if key not in _TURNS}
    told["messages"] = list(_messages(request))
    declared = [
        each for tool in objects_in(request.get("tools")) for each in objects_in(tool.get("functionDeclarations"))
    ]
    if declared:
        told["tools"] = [{"type": "function", "function": each} for each in declared]
    return told


def gemini_response(response: Json) -> Json:
    """The response as one of chat, with every candidate a choice."""
    return {
        "id": response.get("responseId"),
        "model": response.get("modelVersion"),
        "choices": [_choice(candidate) for candidate in objects_in(response.get("candidates"))],
        "usage": _usage(object_in(response.get("usageMetadata"))),
    }


def _choice(candidate: Json) -> Json:
    message = next(_turn("model", candidate.get("content")), {"role": "assistant", "content": None})
    reason = candidate.get("finishReason")
    return {"message": message, "finish_reason": _FINISHES.get(str(reason), reason)}


def _messages(request: Json) -> Iterator[Json]:
    yield from _turn("system", request.get("systemInstruction", request.get("system_instruction")))
    for content in objects_in(request.get("contents")):
        yield from _turn(text_in(content, "role") or "user", content)


def _turn(role: str, content: object) -> Iterator[Json]:
    """The messages of one content: what tools gave back, and what was said."""
    parts = list(objects_in(object_in(content).get("parts")))
    for part in parts:
        answer = part.get("functionResponse")
        if isinstance(answer, dict):
            yield _result(part, answer)
    spoken = [part for part in parts if "functionResponse" not in part]
    if not spoken:
        return
    message: dict[str, object] = {"role": "assistant" if role == "model" else role}
    said = [_part(part) for part in spoken if "functionCall" not in part and part.get("thought") is not True]
    texts = [each["text"] for each in said if each.get("type") == "text"]
    message["content"] = None if not said else "".join(map(str, texts)) if len(texts) == len(said) else said
    thoughts = [part["text"] for part in spoken if part.get("thought") is True and isinstance(part.get("text"), str)]
    if thoughts:
        message["reasoning_content"] = "".join(map(str, thoughts))
    calls = [_call(part, at) for at, part in enumerate(parts) if isinstance(part.get("functionCall"), dict)]
    if calls:
        message["tool_calls"] = calls
    yield message


def _part(part: Json) -> Json:
    data = object_in(part.get("inlineData"))
    kind, text = text_in(data, "mimeType"), text_in(data, "data")
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind is not None and text is not None and kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": data_url(kind, text)}}
    return part


def _call(part: Json, at: int) -> Json:
    """A call; Gemini gives none an id, so it is name and place among the parts, as the toolkit has it."""
    call = object_in(part.get("functionCall"))
    name = text_in(call, "name") or ""
    made = text_in(part, "tool_call_id") or text_in(call, "id") or f"{name}__{at}"
    return {"id": made, "type": "function", "function": {"name": name, "arguments": call.get("args")}}


def _result(part: Json, answer: Json) -> Json:
    """A result: with the call's id where there is one, else it is linked by the function's name."""
    content = answer.get("response")
    text = content if isinstance(content, str) else encode_json(content).decode()
    made = text_in(part, "tool_call_id") or text_in(answer, "id")
    if made is not None:
        return {"role": "tool", "tool_call_id": made, "content": text}
    return {"role": "function", "name": text_in(answer, "name"), "content": text}


def _usage(told: Json) -> Json:
    """Counts; what was thought is counted beside the candidates, where chat counts it among the answer."""
    answer, thoughts = count(told.get("candidatesTokenCount")), count(told.get("thoughtsTokenCount"))
    return {
        "prompt_tokens": told.get("promptTokenCount"),
        "completion_tokens": None if answer is None else answer + (thoughts or 0),
        "total_tokens": told.get("totalTokenCount"),
        "prompt_tokens_details": {"cached_tokens": told.get("cachedContentTokenCount")},
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }
