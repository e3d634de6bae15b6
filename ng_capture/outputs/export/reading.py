"""The way back: which format a row has, and the arrays that it holds."""

from collections.abc import Iterable

from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.formats.interface import Arrays, Record
from ng_capture.outputs.rebuilding import Shape

UNREADABLE = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""What `arrays_of` raises for a row of another shape."""

_ROWS = frozenset({"tokens", "loss_mask", "logprobs", "spans"})


def shape_of(columns: Iterable[str]) -> Shape | None:
    """The format that has these columns; None where none has. Rows with a response are all `gym-response`."""
    there = frozenset(columns)
    if there >= _ROWS:
        return Shape.ROWS
    # some have the columns of another and more
    fitting = [name for name, known in FORMATS.items() if there >= known.columns.keys()]
    if fitting:
        return Shape(max(fitting, key=lambda name: len(FORMATS[name].columns)))
    return Shape.GYM_RESPONSE if "response" in there else None


def arrays_of(shape: Shape, row: Record) -> Arrays:
    """The arrays of a row of the format, of full length and unshifted; raises UNREADABLE."""
    known = FORMATS.get(shape.value)
    return _ours(row) if known is None else known.read(row)


def _ours(row: Record) -> Arrays:
    """A neutral row, or the items of a rebuilt response."""
    if "tokens" in row:
        return Arrays(list(row["tokens"]), list(row["loss_mask"]), list(row["logprobs"]))
    tokens: list[int] = []
    mask: list[int] = []
    log_probs: list[float] = []
    for item in row["response"]["output"]:
        if "generation_token_ids" not in item:
            continue
        prompt, generation = item["prompt_token_ids"], item["generation_token_ids"]
        added = len(prompt) - len(tokens)
        tokens = [*prompt, *generation]
        mask += [0] * added + [1] * len(generation)
        log_probs += [*[0.0] * added, *item["generation_log_probs"]]
    if tokens:
        # items tell what was generated; nothing predicts the token at position 0
        mask[0], log_probs[0] = 0, 0.0
    return Arrays(tokens, mask, log_probs)
