"""Rebuilt responses: contiguous, token-bearing output items of a chain (capture-files.md 4, Projection)."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ng_capture.chains.calls import Call
from ng_capture.outputs.chunks import Chunk, array_of, float_array
from ng_capture.records.json_text import encode_json
from ng_capture.verdicts.judge import Judgement

_TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts")


class Projection(msgspec.Struct, frozen=True, eq=False):
    """`output` is the JSON array of the rebuilt items in pieces; usage counts tokens of the chain."""

    output: list[Chunk]
    input_tokens: int
    output_tokens: int

    def response(self, rollout_id: str, model: str) -> list[Chunk]:
        """A whole response around the items, where a row has none."""
        head = {"id": f"proj-{rollout_id}", "model": model, "object": "response"}
        usage = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        opening = encode_json(head)[:-1] + b',"output":'
        return [opening, *self.output, b',"usage":%b}' % encode_json(usage)]


class NoProjection(msgspec.Struct, frozen=True):
    """Why a rollout has no rebuilt response; NeMo Gym's text where it fails too."""

    error: str


def project(judgement: Judgement) -> list[Projection] | NoProjection:
    """The rebuilt items of every delivered chain; of a masked rollout those of its main chain, for the eye.

    Only what may be trained carries tokens: a call without loss is there as its items, its ids as the next prompt's.
    """
    if judgement.retired:
        return NoProjection(f"RuntimeError: Token capture for rollout {judgement.rollout_id} is retired")
    if judgement.rows:
        return [_projection(judgement, row.calls, frozenset(row.trained)) for row in judgement.rows]
    calls = judgement.main_chain
    if not calls:
        return NoProjection(_why_nothing(judgement))
    for call in calls:
        known = judgement.analysis.calls[call]
        if known.entry.log_probs is None or "multiple_token_items" in known.reasons:
            finding = next(f for f in judgement.findings if f.call == call and f.severity == "error")
            return NoProjection(f"{finding.reason}: {finding.message}")
    return [_projection(judgement, calls, frozenset(calls))]


def _projection(judgement: Judgement, chain: tuple[str, ...], carrying: frozenset[str]) -> Projection:
    calls = [judgement.analysis.calls[call] for call in chain]
    first = next(call.prompt for call in calls if call.id in carrying)
    assert first is not None
    return Projection(
        output=array_of(item for call in calls for item in _items(call, carries=call.id in carrying)),
        input_tokens=len(first),
        output_tokens=sum(call.generated for call in calls if call.id in carrying),
    )


def _why_nothing(judgement: Judgement) -> str:
    if judgement.snapshot.entries:
        return "ValueError: capture produced no safe trainable chain"
    if not judgement.snapshot.defects:
        return "capture contains no token records"
    first = judgement.findings[0]
    return f"{first.reason}: {first.message}"


def _items(call: Call, *, carries: bool) -> Iterator[list[Chunk]]:
    items: list[Mapping[str, object]] = call.fields.output_items or [{"type": "message"}]
    carrier = _carrier(call, items)
    for index, item in enumerate(items):
        if carries and index == carrier:
            yield _with_tokens(call, item)
        else:
            yield [encode_json({key: value for key, value in item.items() if key not in _TOKEN_FIELDS})]


def _carrier(call: Call, items: list[Mapping[str, object]]) -> int:
    """The item that carries the tokens: the one named, else one that has some inline, else the last."""
    if call.fields.token_item_index is not None:
        return call.fields.token_item_index
    inline = (index for index, item in enumerate(items) if "generation_token_ids" in item)
    return next(inline, len(items) - 1)


def _with_tokens(call: Call, item: Mapping[str, object]) -> list[Chunk]:
    assert call.prompt is not None and call.entry.log_probs is not None
    plain = encode_json({key: value for key, value in item.items() if key not in _TOKEN_FIELDS})
    opening = plain[:-1] + (b"," if len(plain) > 2 else b"")
    pieces: Iterable[Chunk] = (
        b'%b"prompt_token_ids":[' % opening,
        *call.prompt.json_items(),
        b'],"generation_token_ids":[',
        call.entry.generation.text[:-1],
        b'],"generation_log_probs":',
        float_array(call.entry.log_probs),
    )
    experts = call.fields.routed_experts
    closing = b"}" if experts is None else b',"routed_experts":%b}' % encode_json(experts)
    return [*pieces, closing]
