"""A training row with its arrays as lists, to be cut, masked and laid out for a trainer."""

import msgspec

from ng_capture.outputs.training_rows import RowHead, TrainingRow


class FlatRow(msgspec.Struct, frozen=True, eq=False):
    """Tokens, loss mask and log probabilities of full, equal length, unshifted; 0.0 where the mask is 0."""

    head: RowHead
    tokens: list[int]
    loss_mask: list[int]
    log_probs: list[float]
    experts: list[list[list[int]] | None] | None

    @property
    def trained(self) -> int:
        """How many tokens carry loss."""
        return sum(self.loss_mask)

    @property
    def response_start(self) -> int:
        """Where the response begins: at the first generated token; nothing predicts the one at position 0."""
        return max(1, next(span.start for span in self.head.spans if span.kind == "gen"))

    @property
    def stop(self) -> str:
        """Why the last call of the row ended, `stop` where that is not known."""
        return self.head.finish_reasons[-1] or "stop"

    def per_token_versions(self) -> list[str | None]:
        """The weights that sampled each generated token, None elsewhere (case T39)."""
        versions: list[str | None] = [None] * len(self.tokens)
        for span in self.head.spans:
            if span.kind == "gen" and span.weight_version is not None:
                versions[span.start : span.end] = [str(span.weight_version)] * (span.end - span.start)
        return versions


def flat_row(row: TrainingRow) -> FlatRow:
    """The row with its arrays."""
    mask: list[int] = []
    log_probs: list[float] = []
    for stretch in row.stretches:
        mask += [0 if stretch.log_probs is None else 1] * stretch.length
        log_probs += [0.0] * stretch.length if stretch.log_probs is None else stretch.log_probs.tolist()
    return FlatRow(row.head, row.tokens.values().tolist(), mask, log_probs, row.experts)
