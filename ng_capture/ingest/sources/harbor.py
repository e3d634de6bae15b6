"""Harbor: the `rollout_details` of a trial's result, or the metrics of ATIF steps (ingest.md 2, rank 4)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ng_capture.ingest.raw import RawExchange, RolloutClaim
from ng_capture.ingest.sources.bodies import Body, exchange
from ng_capture.ingest.sources.fields import id_of, number_of, seconds_of, text_of
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading
from ng_capture.ingest.sources.lines import JsonLine, whole_document
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import field_claims, named
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import encode_json, object_in, objects_in

_LISTS = ("prompt_token_ids", "completion_token_ids")


def _recognises(head: Head) -> bool:
    return head.has_any("agent_result", "rollout_details") or head.has("schema_version", "steps")


def _read(files: Sequence[SourceFile]) -> Iterator[Reading]:
    """A trajectory that lies under a result with details tells of the same calls: it is passed over."""
    told: set[Path] = set()
    trajectories: list[SourceFile] = []
    for file in files:
        if file.head().has("steps"):
            trajectories.append(file)
            continue
        for reading in _of_document(file):
            if isinstance(reading, RawExchange):
                told.add(Path(file.path).resolve().parent)
            yield reading
    for file in trajectories:
        if told.isdisjoint(Path(file.path).resolve().parents):
            yield from _of_document(file)


def _of_document(file: SourceFile) -> Iterator[Reading]:
    for document in whole_document(file):
        if isinstance(document, Defect):
            yield document
        elif "steps" in document.value:
            yield from _of_trajectory(document, document.value, _claims(document.value, "session_id", "trajectory_id"))
        else:
            yield from _of_result(document)


def _of_result(document: JsonLine) -> Iterator[Reading]:
    """The calls of a trial: those of its agent, then those of its steps' agents."""
    result = document.value
    claims = _claims(result, "trial_name")
    model = text_of(object_in(object_in(result.get("agent_info")).get("model_info")), "name")
    agents = [result, object_in(result.get("agent_result"))]
    agents += [object_in(step.get("agent_result")) for step in objects_in(result.get("step_results"))]
    details = [detail for agent in agents for detail in objects_in(agent.get("rollout_details"))]
    for number, detail in enumerate(details):
        yield from _of_detail(document, detail, "" if number == 0 else f"segment-{number}-", model, claims)


def _of_detail(
    document: JsonLine,
    detail: Mapping[str, object],
    prefix: str,
    model: str | None,
    claims: Sequence[RolloutClaim],
) -> Iterator[Reading]:
    prompts, completions = (_list(detail.get(name)) for name in _LISTS)
    log_probs = _list(detail.get("logprobs"))
    if prompts and len(prompts) != len(completions):
        # Harbor leaves out what a turn lacks, so its lists shift: nothing says which belong together
        lengths = f"{len(prompts)} prompts, {len(completions)} completions"
        yield Defect(reason="partial_tokens", file=document.file, line=document.number, detail=lengths)
        return
    aligned = len(log_probs) == len(completions)
    for turn, completion in enumerate(completions):
        tokens: dict[str, object] = {"generation_token_ids": completion}
        if prompts:
            tokens["prompt_token_ids"] = prompts[turn]
        if aligned:
            tokens["generation_log_probs"] = log_probs[turn]
        yield _exchange(document, f"{prefix}turn-{turn + 1}", model, {"role": "assistant", **tokens}, claims)


def _of_trajectory(
    document: JsonLine, trajectory: Mapping[str, object], claims: Sequence[RolloutClaim], prefix: str = ""
) -> Iterator[Reading]:
    """The agent's steps that are one call each, then those of the trajectories inside."""
    agent_model = text_of(object_in(trajectory.get("agent")), "model_name")
    for place, step in enumerate(objects_in(trajectory.get("steps")), start=1):
        metrics = object_in(step.get("metrics"))
        if step.get("source") != "agent" or not metrics or step.get("is_copied_context") is True:
            continue
        call_id = f"{prefix}step-{id_of(step, 'step_id') or place}"
        if number_of(step, "llm_call_count") not in (None, 1):
            detail = f"one step of {step['llm_call_count']} calls"
            yield Defect(reason="partial_tokens", file=document.file, line=document.number, call=call_id, detail=detail)
            continue
        yield _exchange(
            document,
            call_id,
            text_of(step, "model_name") or agent_model,
            _message(step, metrics),
            claims,
            usage=_usage(metrics),
            started_at=seconds_of(step, "timestamp"),
        )
    for number, inner in enumerate(objects_in(trajectory.get("subagent_trajectories")), start=1):
        name = id_of(inner, "trajectory_id") or f"subagent-{number}"
        yield from _of_trajectory(document, inner, claims, f"{prefix}{name}/")


def _exchange(
    document: JsonLine,
    call_id: str,
    model: str | None,
    message: Mapping[str, object],
    claims: Sequence[RolloutClaim],
    usage: Mapping[str, object] | None = None,
    started_at: float | None = None,
) -> RawExchange:
    response = {"model": model, "choices": [{"index": 0, "message": message, "finish_reason": None}]}
    return exchange(
        document,
        Body({"model": model}),
        Body({**response, "usage": usage} if usage else response),
        claims,
        byte=None,
        call_id=call_id,
        dialect="chat",
        started_at=started_at,
    )


def _message(step: Mapping[str, object], metrics: Mapping[str, object]) -> Mapping[str, object]:
    """What an agent said in a step, in the words of the chat API; token fields as far as the metrics have them."""
    spelled = {
        "prompt_token_ids": "prompt_token_ids",
        "completion_token_ids": "generation_token_ids",
        "logprobs": "generation_log_probs",
    }
    tokens = {ours: metrics[name] for name, ours in spelled.items() if metrics.get(name) is not None}
    calls = [
        {
            "id": call.get("tool_call_id"),
            "type": "function",
            "function": {
                "name": call.get("function_name"),
                "arguments": encode_json(call.get("arguments")).decode(),
            },
        }
        for call in objects_in(step.get("tool_calls"))
    ]
    said = {"role": "assistant", "content": step.get("message"), "reasoning_content": step.get("reasoning_content")}
    return {**said, **({"tool_calls": calls} if calls else {}), **tokens}


def _usage(metrics: Mapping[str, object]) -> Mapping[str, object]:
    usage: dict[str, object] = {
        name: metrics[name] for name in ("prompt_tokens", "completion_tokens") if metrics.get(name) is not None
    }
    if metrics.get("cached_tokens") is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": metrics["cached_tokens"]}
    return usage


def _claims(value: Mapping[str, object], *names: str) -> Sequence[RolloutClaim]:
    """The field that names the rollout, else the first of the names that the log gives it."""
    of_field = field_claims(value)
    own = [RolloutClaim("field", told) for name in names for told in named(value.get(name))]
    return of_field or own[:1]


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


HARBOR = LogFormat("harbor", _recognises, _read)
