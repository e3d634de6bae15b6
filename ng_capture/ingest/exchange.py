"""One line of `.capture.jsonl` as a whole: what was asked, what was answered, with which tokens."""

from collections.abc import Mapping, Sequence

import msgspec

from ng_capture.ingest.evidence.agreement import evidence_of
from ng_capture.ingest.evidence.answers import answers_of
from ng_capture.ingest.messages import Message, answer_message, request_messages
from ng_capture.records.assembling import assemble
from ng_capture.records.json_text import decode_json, encode_json, object_in, printable
from ng_capture.records.raw_call import finish_reason
from ng_capture.records.streams import stream_events


class RawTokens(msgspec.Struct, frozen=True):
    """The token fields of one answer as they stand there, unchecked; what is absent is None."""

    prompt: Sequence[object] | None
    generation: Sequence[object]
    log_probs: Sequence[object] | None

    @property
    def complete(self) -> bool:
        return self.prompt is not None and self.log_probs is not None


class Exchange(msgspec.Struct, frozen=True, eq=False):
    """A request and its response. `asked` are the turns of the request, `tools` the JSON text of what it offered."""

    call_id: str
    line: int
    started_at: float
    completed_at: float
    model: str
    response_id: str | None
    asked: tuple[Message, ...]
    tools: str
    answer: Message | None
    finish_reason: str | None
    tokens: RawTokens | None

    @property
    def conversation(self) -> tuple[Message, ...]:
        """What was asked and what was answered."""
        return self.asked if self.answer is None else (*self.asked, self.answer)


def decode_exchange(data: bytes, line: int) -> Exchange | None:
    """The exchange of a line, None where it names no call; raises ValueError for what is no JSON object."""
    try:
        return _decoded(data, line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _decoded(data: bytes, line: int) -> Exchange | None:
    value, _ = decode_json(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    call_id = value.get("model_call_id")
    if not isinstance(call_id, str) or not call_id:
        return None
    events = stream_events(value.get("response_raw"))
    response = object_in(value.get("response")) or assemble(events)
    request = object_in(value.get("request"))
    return Exchange(
        call_id=printable(call_id),
        line=line,
        started_at=_seconds(value.get("started_at")),
        completed_at=_seconds(value.get("completed_at")),
        model=_word(response.get("model")) or _word(request.get("model")) or "",
        response_id=_word(response.get("id")),
        asked=request_messages(request),
        tools=encode_json(request.get("tools") or []).decode(),
        answer=answer_message(response),
        finish_reason=finish_reason(response),
        tokens=_tokens(request, assemble(events) or response),
    )


def _tokens(request: Mapping[str, object], response: Mapping[str, object]) -> RawTokens | None:
    """The tokens of the first answer, None where its generation is not told."""
    evidence = evidence_of(answers_of(request, response)[0])
    if evidence.generation is None:
        return None
    return RawTokens(evidence.prompt, evidence.generation, evidence.log_probs)


def _seconds(value: object) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return float(value) if known else 0.0  # type: ignore[arg-type]


def _word(value: object) -> str | None:
    return printable(value) if isinstance(value, str) and value else None
