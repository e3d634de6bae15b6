"""What is safe to print, and where it goes: data to standard output, everything else to standard error."""

import contextlib
import sys
from typing import Final

from ng_capture.visible import visible as safe

__all__ = [
    "BOLD_RED",
    "DIM",
    "GREEN",
    "NO_COLORS",
    "YELLOW",
    "Colors",
    "can_ask",
    "confirmed",
    "safe",
    "tell",
    "tell_error",
]

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


def can_ask() -> bool:
    """True if a person sits there: a terminal to read from and one to ask on."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()


def confirmed(question: str) -> bool:
    """Whether a person says yes; true where nobody can be asked. Standard output stays free for data."""
    if not can_ask():
        return True
    from rich.console import Console
    from rich.prompt import Confirm
    from rich.text import Text

    try:
        return Confirm.ask(Text(safe(question)), console=Console(stderr=True, soft_wrap=True), default=False)
    except EOFError:
        return False


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
