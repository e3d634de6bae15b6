"""A training row with its arrays as lists, to be cut, masked and laid out for a trainer."""

from collections.abc import Mapping

import msgspec

from ng_capture.outputs.training_rows import RowHead, TrainingRow


class FlatRow(msgspec.Struct, frozen=True, eq=False):
    """Tokens, loss mask and log probabilities of full, equal length, unshifted; 0.0 where the mask is 0.

    `untrained` counts by reason the tokens that carried loss before the row was cut or masked.
    """

    head: RowHead
    tokens: list[int]
    loss_mask: list[int]
    log_probs: list[float]
    experts: list[list[list[int]] | None] | None
    untrained: Mapping[str, int] = {}

    @property
    def trained(self) -> int:
        """How many tokens carry loss."""
        return sum(self.loss_mask)

    @property
    def response_start(self) -> int:
        """Where the response begins: at the first generated token; nothing predicts the one at position 0."""
        return max(1, next(span.start for span in self.head.spans if span.kind == "gen"))

    @property
    def stop(self) -> str | None:
        """Why the last call of the row ended; None where that is not known."""
        return self.head.finish_reasons[-1]


def flat_row(row: TrainingRow) -> FlatRow:
    """The row with its arrays."""
    mask: list[int] = []
    log_probs: list[float] = []
    for stretch in row.stretches:
        mask += [0 if stretch.log_probs is None else 1] * stretch.length
        log_probs += [0.0] * stretch.length if stretch.log_probs is None else stretch.log_probs.tolist()
    return FlatRow(row.head, row.tokens.values().tolist(), mask, log_probs, row.experts)
