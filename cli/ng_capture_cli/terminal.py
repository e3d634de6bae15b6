"""What is safe to print, and where it goes: data to standard output, everything else to standard error."""

import contextlib
import sys
from typing import Final

from ng_capture.visible import visible as safe

__all__ = ["BOLD_RED", "DIM", "GREEN", "NO_COLORS", "YELLOW", "Colors", "safe", "tell", "tell_error"]

BOLD_RED: Final = "\x1b[1;31m"
DIM: Final = "\x1b[2m"
GREEN: Final = "\x1b[32m"
YELLOW: Final = "\x1b[33m"
_RESET: Final = "\x1b[0m"


class Colors:
    """Styles text where the stream is a terminal (`auto`), always, or never."""

    def __init__(self, when: str, *, terminal: bool) -> None:
        self._on = when == "always" or (when == "auto" and terminal)

    def paint(self, text: str, style: str) -> str:
        return f"{style}{text}{_RESET}" if self._on else text


NO_COLORS = Colors("never", terminal=False)


def tell(line: str) -> None:
    """One line on standard error; where that is closed or full, nothing can be told and the work goes on."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(safe(line), file=sys.stderr, flush=True)


def tell_error(message: str, hint: str | None = None) -> None:
    """Place, fault, numbers; then the next command to type."""
    tell(f"ng-capture: {message}")
    if hint is not None:
        tell(f"hint: {hint}")
