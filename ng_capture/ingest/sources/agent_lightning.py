"""Agent Lightning's spans, a line each: ids in attributes, often as Python spells a list (ingest.md 2, rank 5)."""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence

from ng_capture.ingest.raw import RawExchange, RolloutClaim
from ng_capture.ingest.sources.bodies import Body, exchange
from ng_capture.ingest.sources.decoding import decode_raw
from ng_capture.ingest.sources.fields import id_of, milliseconds_between, seconds_of, text_of
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading, one_by_one
from ng_capture.ingest.sources.lines import JsonLine, json_lines
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import named, of_attempt
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import object_in

_PROXY = "llm.hosted_vllm."
_WEAVE = "agentlightning.operation.output."
_PROMPTS = ("prompt_token_ids", f"{_PROXY}prompt_token_ids", f"{_WEAVE}prompt_token_ids")
_RESPONSES = (
    "response_token_ids",
    f"{_PROXY}response_token_ids",
    f"{_WEAVE}response_token_ids.0",
    f"{_WEAVE}choices.0.token_ids",
    f"{_WEAVE}choices.0.provider_specific_fields.token_ids",
)
_IDS = ("gen_ai.response.id", f"{_PROXY}id", f"{_WEAVE}id")
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "seed")


def _recognises(head: Head) -> bool:
    return head.has("rollout_id", "attempt_id") and head.has_any("sequence_id", "span_id", "attributes")


def _read(file: SourceFile) -> Iterator[Reading]:
    """The spans that hold ids. One call may have two: then that of the proxy, which holds the choices, is read.

    The file is read twice; held are the ids of the responses that the proxy's spans tell of.
    """
    of_proxy = {
        _response_id(line.value)
        for line in json_lines(file)
        if not isinstance(line, Defect) and f"{_PROXY}choices" in object_in(line.value.get("attributes"))
    }
    for line in json_lines(file):
        if isinstance(line, Defect):
            yield line
            continue
        attributes = object_in(line.value.get("attributes"))
        if any(name in attributes for name in (*_PROMPTS, *_RESPONSES, f"{_PROXY}choices")):
            response_id = _response_id(line.value)
            if f"{_PROXY}choices" in attributes or response_id is None or response_id not in of_proxy:
                yield _exchange(line, attributes, response_id)


def _exchange(line: JsonLine, attributes: Mapping[str, object], response_id: str | None) -> RawExchange:
    value = line.value
    started, completed = seconds_of(value, "start_time"), seconds_of(value, "end_time")
    model = text_of(attributes, "gen_ai.response.model", f"{_PROXY}model", "gen_ai.request.model")
    claims = [
        RolloutClaim("field", of_attempt(told, id_of(value, "attempt_id"))) for told in named(value.get("rollout_id"))
    ]
    return exchange(
        line,
        Body(_request(attributes, model)),
        Body(_response(attributes, model, response_id)),
        claims,
        call_id=id_of(value, "span_id"),
        dialect="chat",
        started_at=started,
        completed_at=completed,
        latency_ms=milliseconds_between(started, completed),
    )


def _response(attributes: Mapping[str, object], model: str | None, response_id: str | None) -> Mapping[str, object]:
    """Ids and choices where a chat server puts them; a second spelling of the ids stands beside the first."""
    response: dict[str, object] = {"id": response_id, "model": model}
    for name in _PROMPTS:
        if name in attributes:
            response["prompt_token_ids"] = _plain(attributes[name])
            break
    choices = _plain(attributes.get(f"{_PROXY}choices"))
    listed = [dict(choice) for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    choice = listed[0] if listed else {"index": 0, "message": _message(attributes)}
    generation = next((_flat(_plain(attributes[name])) for name in _RESPONSES if name in attributes), None)
    if generation is not None:
        choice["response_token_ids" if "token_ids" in choice else "token_ids"] = generation
    if "logprobs.content" in attributes and choice.get("logprobs") is None:
        choice["logprobs"] = {"content": _plain(attributes["logprobs.content"])}
    finish = text_of(attributes, "gen_ai.completion.0.finish_reason")
    response["choices"] = [{"finish_reason": finish, **choice}, *listed[1:]]
    usage = _plain(attributes.get(f"{_PROXY}usage"))
    return {**response, "usage": usage} if isinstance(usage, dict) else response


def _request(attributes: Mapping[str, object], model: str | None) -> Mapping[str, object]:
    request: dict[str, object] = {"model": model}
    for name in _SAMPLING:
        told = _plain(attributes.get(f"gen_ai.request.{name}", attributes.get(f"{_PROXY}{name}")))
        if told is not None:
            request[name] = told
    messages = _plain(attributes.get(f"{_PROXY}messages"))
    numbered = _numbered(attributes, "gen_ai.prompt.")
    if isinstance(messages, list) or numbered:
        request["messages"] = messages if isinstance(messages, list) else numbered
    return request


def _message(attributes: Mapping[str, object]) -> Mapping[str, object]:
    return next(iter(_numbered(attributes, "gen_ai.completion.")), {"role": "assistant"})


def _numbered(attributes: Mapping[str, object], prefix: str) -> Sequence[Mapping[str, object]]:
    """The messages of attributes like `gen_ai.prompt.0.content`, in their order."""
    messages: list[Mapping[str, object]] = []
    while f"{prefix}{len(messages)}.role" in attributes:
        start = f"{prefix}{len(messages)}."
        told = {name: attributes.get(start + name) for name in ("role", "content")}
        messages.append(told)
    return messages


def _response_id(span: Mapping[str, object]) -> str | None:
    return id_of(object_in(span.get("attributes")), *_IDS)


def _flat(ids: object) -> object:
    """The ids of the one choice, which the server's list of lists has first."""
    return ids[0] if isinstance(ids, list) and len(ids) == 1 and isinstance(ids[0], list) else ids


def _plain(value: object) -> object:
    """The value that a text spells, in JSON or as Python writes it; else the value as it is."""
    if not isinstance(value, str) or value[:1] not in ("[", "{", "("):
        return value
    try:
        return decode_raw(value.encode("utf-8", "surrogatepass")).value
    except ValueError:
        pass
    try:
        # through JSON: nothing comes out that a log could not hold
        return decode_raw(json.dumps(ast.literal_eval(value)).encode()).value
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return value


AGENT_LIGHTNING = LogFormat("agent-lightning", _recognises, one_by_one(_read))
