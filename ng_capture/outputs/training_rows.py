"""One training row per chain: flat tokens, loss mask, log probabilities, spans (policies-and-exports.md 2.3 `rows`)."""

from array import array
from collections.abc import Iterator

import msgspec

from ng_capture import __version__
from ng_capture.chains.calls import Call
from ng_capture.outputs.chunks import Chunk, float_array
from ng_capture.outputs.expert_rows import merged_experts
from ng_capture.records.ids import IdSequence
from ng_capture.records.raw_call import LENGTH_STOPS
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.accounting import Accounting
from ng_capture.verdicts.judge import Judgement, finish_reasons
from ng_capture.verdicts.policies import PlannedRow, trained_tokens


class Span(msgspec.Struct, frozen=True):
    """Tokens start..end of a row: `prompt` ids that a call added, or what it generated (`gen`).

    `call_offset` is where the span begins in that call's prompt, or in its generation.
    """

    call_id: str
    kind: str
    start: int
    end: int
    call_offset: int
    weight_version: int | str | None
    model: str


class Source(msgspec.Struct, frozen=True):
    """A file that the row was made of."""

    name: str
    sha256: str | None


class RowHead(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of a training row but its long arrays; null is unknown."""

    rollout_id: str
    group_id: str | None
    trajectory_index: int
    n_trajectories: int
    role: str
    reward: float | None
    advantage: float | None
    calls: tuple[str, ...]
    spans: tuple[Span, ...]
    policy: str
    rollout_trainable_tokens: int
    row_weight: float
    truncated: bool | None
    finish_reasons: tuple[str | None, ...]
    terminal: str | None
    accounting: Accounting
    sources: tuple[Source, ...]
    tool_version: str


class Stretch(msgspec.Struct, frozen=True, eq=False):
    """A run of tokens with one mask value; `log_probs` only where the mask is 1."""

    length: int
    log_probs: "array[float] | None"


class TrainingRow(msgspec.Struct, frozen=True, eq=False):
    """One chain as a trainer takes it: tokens, loss_mask and logprobs of full, equal length, unshifted.

    Where the mask is 0 the log probability is 0.0. `experts` has one entry per token, None where the row of a token is
    missing; it is None altogether where no call of the chain has any.
    """

    head: RowHead
    tokens: IdSequence
    stretches: tuple[Stretch, ...]
    experts: list[list[list[int]] | None] | None

    def as_json(self) -> list[Chunk]:
        """The row as one line, without its line break."""
        experts = b"null" if self.experts is None else msgspec.json.encode(self.experts)
        return [
            msgspec.json.encode(self.head)[:-1],
            b',"tokens":[',
            *self.tokens.json_items(),
            b'],"loss_mask":[',
            b"".join((b"0," if s.log_probs is None else b"1,") * s.length for s in self.stretches)[:-1],
            b'],"logprobs":[',
            b"".join(_log_prob_text(stretch) for stretch in self.stretches)[:-1],
            b'],"routed_experts":%b}' % experts,
        ]

    def as_table_row(self) -> "TableRow":
        """The row with its long columns as arrays."""
        log_probs = array("f")
        for stretch in self.stretches:
            log_probs.extend(zeros(stretch.length) if stretch.log_probs is None else array("f", stretch.log_probs))
        mask = b"".join((b"\0" if s.log_probs is None else b"\1") * s.length for s in self.stretches)
        return TableRow(self.head, self.tokens.values(), mask, log_probs, self.experts)


class TableRow(msgspec.Struct, frozen=True, eq=False):
    """A training row for a columnar file: ids of 64 bits, one byte a token of loss mask, 32-bit log probabilities."""

    head: RowHead
    tokens: "array[int]"
    loss_mask: bytes
    log_probs: "array[float]"
    experts: list[list[list[int]] | None] | None


def training_rows(judgement: Judgement, row: RolloutRow | None) -> Iterator[TrainingRow]:
    """The rows of a judged rollout under its policy; none where it is masked."""
    analysis = judgement.analysis
    total = judgement.accounting.trained
    ends = finish_reasons(judgement.snapshot)
    shown: set[str] = set()
    for index, planned in enumerate(judgement.rows):
        calls = [analysis.calls[call] for call in planned.calls]
        tokens = calls[-1].full
        assert tokens is not None
        end = ends.get(calls[-1].id)
        trained = sum(trained_tokens(analysis, call) for call in planned.trained)
        head = RowHead(
            rollout_id=judgement.rollout_id,
            group_id=row.group_id if row is not None else None,
            trajectory_index=index,
            n_trajectories=len(judgement.rows),
            role="main" if index == 0 else "root" if shown.isdisjoint(planned.calls) else "branch",
            reward=row.reward if row is not None else None,
            advantage=None,
            calls=planned.calls,
            spans=tuple(_spans(calls)),
            policy=judgement.judging.policy.value,
            rollout_trainable_tokens=total,
            row_weight=trained / total,
            truncated=None if end is None else end in LENGTH_STOPS,
            finish_reasons=tuple(ends.get(call.id) for call in calls),
            terminal=analysis.attribution.call,
            accounting=judgement.accounting,
            sources=tuple(Source(file.name, file.sha256) for file in judgement.snapshot.files),
            tool_version=__version__,
        )
        shown.update(planned.calls)
        yield TrainingRow(head, tokens, tuple(_stretches(calls, planned)), merged_experts(calls))


def _spans(calls: list[Call]) -> Iterator[Span]:
    held = 0
    for call in calls:
        assert call.prompt is not None and call.full is not None
        prompt, full = len(call.prompt), len(call.full)
        version, model = call.weight_version, call.fields.model
        if prompt > held:
            yield Span(call.id, "prompt", held, prompt, held, version, model)
        yield Span(call.id, "gen", prompt, full, 0, version, model)
        held = full


def _stretches(calls: list[Call], planned: PlannedRow) -> Iterator[Stretch]:
    held = 0
    trained = frozenset(planned.trained)
    for call in calls:
        assert call.prompt is not None and call.full is not None
        first, end = len(call.prompt), len(call.full)
        if call.id not in trained:
            continue
        assert call.entry.log_probs is not None
        # nothing predicts the token at position 0
        first = max(first, 1)
        if first > held:
            yield Stretch(first - held, None)
        if end > first:
            yield Stretch(end - first, call.entry.log_probs[first - end :])
        held = end
    last = calls[-1].full
    assert last is not None
    if len(last) > held:
        yield Stretch(len(last) - held, None)


def zeros(length: int) -> "array[float]":
    """That many zeros."""
    return array("f", bytes(4 * length))


def _log_prob_text(stretch: Stretch) -> bytes:
    return b"0.0," * stretch.length if stretch.log_probs is None else float_array(stretch.log_probs)[1:-1] + b","
