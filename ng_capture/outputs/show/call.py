"""One call in full: its record, what was asked and answered, what is wrong with it."""

import msgspec

from ng_capture.ingest.messages import Message
from ng_capture.outputs.explain.rollout import ShownRollout
from ng_capture.verdicts.findings import Finding
from ng_capture.verdicts.judge import finish_reasons

CALL_SCHEMA = "ng-capture.show-call/1"


class CallView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one call. Times are seconds since 1970; log probabilities are those of the generated ids."""

    schema: str = CALL_SCHEMA
    rollout_id: str
    call: str
    file: str
    line: int
    model: str
    response_id: str | None
    created_at: float
    parent: str | None
    parent_named: str | None
    parent_resolution: str | None
    weight_version: int | str | None
    stop: str | None
    prompt_token_ids: tuple[int, ...] | None
    generation_token_ids: tuple[int, ...] | None
    generation_log_probs: tuple[float, ...] | None
    asked: tuple[Message, ...] | None
    answer: Message | None
    findings: tuple[Finding, ...]


def view_of(rollout: ShownRollout, call_id: str) -> CallView:
    """The view of one call of a judged rollout."""
    analysis = rollout.judgement.analysis
    call, link, exchange = analysis.calls[call_id], analysis.links.get(call_id), rollout.exchanges.get(call_id)
    prompt = None if call.prompt is None else tuple(call.prompt.values())
    full = None if call.full is None or prompt is None else tuple(call.full.values())
    log_probs = call.entry.log_probs
    return CallView(
        rollout_id=rollout.judgement.rollout_id,
        call=call_id,
        file=call.entry.file,
        line=call.entry.line,
        model=call.fields.model,
        response_id=call.fields.response_id,
        created_at=call.fields.created_at,
        parent=link.parent if link is not None else None,
        parent_named=call.fields.parent_call_id,
        parent_resolution=call.fields.parent_resolution,
        weight_version=call.weight_version,
        stop=finish_reasons(rollout.judgement.snapshot).get(call_id),
        prompt_token_ids=prompt,
        generation_token_ids=None if full is None or prompt is None else full[len(prompt) :],
        generation_log_probs=None if log_probs is None else tuple(log_probs),
        asked=exchange.asked if exchange is not None else None,
        answer=rollout.answer(call),
        findings=tuple(
            finding
            for finding in rollout.judgement.findings
            if call_id == finding.call or call_id in (finding.calls or ())
        ),
    )
