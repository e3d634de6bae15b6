"""`ng-capture rebuild --dry-run`: what would become of every generated token."""

import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ng_capture.outputs.rebuild import Rebuilt


class Accounts:
    """Adds up the accounts of rollouts: trained, context, lost by reason; then what of the trained is in no row.

    Captured is trained, context and lost; trained is what is trained in rows and what is left out.
    """

    def __init__(self) -> None:
        self._captured = 0
        self._trained = 0
        self._context = 0
        self._lost: Counter[str] = Counter()
        self._rows = 0
        self._exported = 0
        self._untrained: Counter[str] = Counter()

    def print_all(self, results: "Iterable[Rebuilt]") -> None:
        """Add all of them up and print the sums."""
        for result in results:
            self._rows += result.rows
            self._exported += result.trained
            self._untrained.update(result.untrained)
            if result.receipt is not None:
                account = result.receipt.accounting
                self._captured += account.captured
                self._trained += account.trained
                self._context += account.context
                self._lost.update(account.lost)
        told = [("captured", self._captured), ("trained", self._trained), ("context", self._context)]
        told += [(f"lost: {reason}", count) for reason, count in self._lost.most_common()]
        told += [("rows", self._rows), ("trained in rows", self._exported)]
        told += [(f"left out: {reason}", count) for reason, count in self._untrained.most_common()]
        width = max(len(name) for name, _ in told)
        for name, count in told:
            sys.stdout.write(f"{name:<{width}}  {count:>15,}\n")
