"""Where the rows of each rollout stand in a file, and whether its receipt may say that it covers the rollout."""

import msgspec

from ng_capture.outputs.rebuild import Rebuilt
from ng_capture.outputs.receipt import ReceiptRollout


class RowPlaces:
    """Counts the rows of one file as they come; gives each rollout its entry in the receipt."""

    def __init__(self) -> None:
        self.rows = 0
        self._shared: dict[str, tuple[int, ...]] = {}

    def entry(self, result: Rebuilt) -> ReceiptRollout | None:
        """The entry with its rows, after which those of the next rollout begin; None for what has none."""
        first, self.rows = self.rows, self.rows + result.rows
        if result.receipt is None:
            return None
        places = self._places(result, tuple(range(first, self.rows)), result.receipt.rollout_id)
        # what was left out may still be wanted
        covered = result.receipt.covered and bool(places) and not result.left_out
        return msgspec.structs.replace(result.receipt, rows=places, covered=covered)

    def _places(self, result: Rebuilt, places: tuple[int, ...], rollout_id: str) -> tuple[int, ...]:
        """Those of a rollout; one that shares its row with another has it where the first of both was written."""
        if result.partner is None:
            return places
        if places:
            self._shared[result.partner] = places
        return places or self._shared.pop(rollout_id, ())
