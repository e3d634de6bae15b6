"""What is safe to print, and where it goes: data to standard output, everything else to standard error."""

import contextlib
import re
import sys
from typing import Final

# controls (C0 but for tab, C1), and the marks that turn the direction of text around
_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
BOLD_RED: Final = "\x1b[1;31m"
DIM: Final = "\x1b[2m"
_RESET: Final = "\x1b[0m"


def safe(text: str) -> str:
    """The text with everything that could move a cursor, change a colour or turn a line around made visible."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


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
