"""How an answer ended, and whether it is one at all (ingest.md 1.4, capture-files.md 7)."""

from collections.abc import Iterator, Mapping

import msgspec

from ng_capture.ingest.evidence.answers import Answer
from ng_capture.ingest.evidence.told import Values
from ng_capture.ingest.raw import RawExchange
from ng_capture.records.json_text import object_in, objects_in, printable
from ng_capture.records.streams import DONE
from ng_capture.records.usage import count

ABORT = "abort"
_CHAT_WORDS = {
    **dict.fromkeys(("eos", "eos_token", "stop_sequence", "word", "end_turn", "completed"), "stop"),
    **dict.fromkeys(("limit", "max_tokens", "max_output_tokens"), "length"),
    **dict.fromkeys(("aborted", "cancelled", "canceled", "timeout", "error", "failed"), ABORT),
    "tool_use": "tool_calls",
}
_SAID = (
    *("choices", "output", "content", "sequences", "text", "output_ids", "meta_info", "tokens", "generated_text"),
    *("details", "output_messages", "message", "response", "nvext", "sglext"),
)
_LAST_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed", "message_stop"})
_BROKEN = (None, "incomplete", "stream_truncated", "capture_parse_error")
_NAN = "NaN happened"


class End(msgspec.Struct, frozen=True):
    """Why an answer ended, in the words of the chat API and in the engine's own.

    `stop_token_in_ids` is None where nothing says it. `nan`: SGLang put its stop token in place of what it could not
    sample.
    """

    finish: str | None
    native: str | None
    stop_token_in_ids: bool | None
    nan: bool = False


def end_of(answer: Answer, generation: Values | None) -> End:
    """How one answer ended."""
    told = next((reason for reason in _reasons(answer) if reason is not None), None)
    proxied = next((reason for reason in _kept_by_proxies(answer) if reason is not None), None)
    matched = _matched(answer)
    aborted = _chat_word(proxied) == ABORT
    return End(
        finish=ABORT if aborted else _chat_word(told if told is not None else proxied),
        native=proxied if proxied is not None else told,
        stop_token_in_ids=generation[-1] == matched if generation and type(matched) is int else None,
        nan=matched == _NAN,
    )


def refusal_of(answer: Answer) -> str | None:
    """The text with which the model refused."""
    if isinstance(answer.message.get("refusal"), str):
        return printable(str(answer.message["refusal"])) or None
    for item in objects_in(answer.choice.get("output")):
        for part in objects_in(item.get("content")):
            if isinstance(part.get("refusal"), str):
                return printable(str(part["refusal"]))
    return None


def no_answer(call: RawExchange, response: Mapping[str, object]) -> str | None:
    """Why there is no answer to judge, None where there is one: refused, not captured, or empty."""
    said = any(response.get(key) not in (None, [], {}) for key in _SAID)
    if (call.status_code or 0) >= 400 or (call.error_category not in _BROKEN and not said):
        return "http_error"
    if said:
        return None
    if response.get("error") is not None or any(event.get("error") is not None for event in call.events):
        return "http_error"
    if _breaks_off(call):
        return "stream_truncated"
    return "no_output" if response else "response_missing"


def is_truncated(call: RawExchange, answer: Answer) -> bool:
    """True for an answer from a stream without a proper end: the stream's own, and the choice's."""
    unfinished = bool(call.events) and answer.choice.get("finish_reason", True) is None
    return unfinished or _breaks_off(call)


def count_of_answer(answer: Answer) -> int | None:
    """How many generated tokens the server counts in one answer: SGLang and LMDeploy, TGI, llama.cpp."""
    details = object_in(answer.choice.get("details"))
    counts = (
        count(answer.meta_info.get("completion_tokens")),
        count(details.get("generated_tokens")),
        count(answer.choice.get("tokens_predicted")),
    )
    return next((each for each in counts if each is not None), None)


def _breaks_off(call: RawExchange) -> bool:
    if call.error_category == "stream_truncated":
        return True
    return bool(call.events) and not any(map(_is_last, call.events))


def _is_last(event: Mapping[str, object]) -> bool:
    """True for what ends a stream: of chat, of Responses and Messages, of llama.cpp, of TGI. An error ends none."""
    return (
        event is DONE
        or (isinstance(kind := event.get("type"), str) and kind in _LAST_EVENTS)
        or event.get("stop") is True
        or isinstance(event.get("generated_text"), str)
    )


def _kept_by_proxies(answer: Answer) -> Iterator[str | None]:
    for carrier in (answer.choice, answer.message):
        yield _word(object_in(carrier.get("provider_specific_fields")).get("native_finish_reason"))


def _reasons(answer: Answer) -> Iterator[str | None]:
    choice = answer.choice
    for reason in (choice.get("finish_reason"), answer.meta_info.get("finish_reason")):
        yield _word(object_in(reason).get("type")) or _word(reason)
    yield _word(object_in(choice.get("details")).get("finish_reason"))
    yield _word(choice.get("stop_type"))
    if "finish_reason" not in choice:
        # in the chat dialect it is the string that stopped
        yield _word(choice.get("stop_reason"))
    yield _word(object_in(choice.get("incomplete_details")).get("reason"))
    yield _word(choice.get("status"))


def _matched(answer: Answer) -> object:
    """The stop token or string that ended the answer, if the engine names it."""
    for reason in (answer.choice.get("finish_reason"), answer.meta_info.get("finish_reason")):
        if isinstance(reason, dict):
            return reason.get("matched")
    return answer.choice.get("matched_stop", answer.choice.get("stop_reason"))


def _chat_word(reason: str | None) -> str | None:
    return None if reason is None else _CHAT_WORDS.get(reason, reason)


def _word(value: object) -> str | None:
    return printable(value) if isinstance(value, str) and value else None
