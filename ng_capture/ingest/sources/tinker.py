"""tinker-cookbook's `capture/sample.jsonl`: one call of the SDK a line, ids without messages (ingest.md 2, rank 2)."""

from collections.abc import Iterator, Mapping

from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.sources.bodies import Body, exchange
from ng_capture.ingest.sources.fields import id_of, number_of, seconds_of, text_of
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading, one_by_one
from ng_capture.ingest.sources.lines import JsonLine, json_lines
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import cookbook_claims, field_claims
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import object_in, objects_in


def _recognises(head: Head) -> bool:
    return head.has("kind", "scope") and head.has_any("samples", "prompt_tokens", "num_samples")


def _read(file: SourceFile) -> Iterator[Reading]:
    """Lines of other kinds (`train_op`) are no calls of a model."""
    for line in json_lines(file):
        if isinstance(line, Defect):
            yield line
        elif line.value.get("kind") == "sample":
            yield _exchange(line)


def _exchange(line: JsonLine) -> RawExchange:
    """In the spelling of a completion whose prompt was sent as ids; several samples are its choices."""
    value = line.value
    model = text_of(value, "model_path", "base_model")
    request = {"model": model, **object_in(value.get("sampling_params"))}
    if isinstance(value.get("prompt_tokens"), list):
        request["prompt"] = value["prompt_tokens"]
    choices = [_choice(number, sample) for number, sample in enumerate(objects_in(value.get("samples")))]
    started, took = seconds_of(value, "created_at"), number_of(value, "latency_sec")
    scope = object_in(value.get("scope"))
    return exchange(
        line,
        Body(request),
        Body({"model": model, "choices": choices} if "samples" in value else {}),
        [*field_claims(value, scope), *cookbook_claims(scope)],
        call_id=_call_id(value),
        dialect="completions",
        started_at=started,
        completed_at=started + took if started is not None and took is not None else None,
        latency_ms=round(took * 1000, 2) if took is not None else None,
        error_category=_error(value),
    )


def _choice(number: int, sample: Mapping[str, object]) -> Mapping[str, object]:
    reason = text_of(sample, "stop_reason")
    return {
        "index": number,
        "token_ids": sample.get("tokens"),
        "logprobs": None if sample.get("logprobs") is None else {"token_logprobs": sample["logprobs"]},
        # an enumeration may have been written with its class: `StopReason.STOP`
        "finish_reason": reason.rpartition(".")[2].lower() if reason else None,
    }


def _call_id(value: Mapping[str, object]) -> str | None:
    number = id_of(value, "seq_id")
    session = id_of(value, "sampling_session_id")
    return number if session is None or number is None else f"{session}:{number}"


def _error(value: Mapping[str, object]) -> str | None:
    status = text_of(value, "status")
    if status in ("ok", None):
        return None
    return "cancelled" if status == "cancelled" else "exception"


TINKER = LogFormat("tinker", _recognises, one_by_one(_read))
