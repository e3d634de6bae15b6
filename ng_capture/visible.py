"""Text from captures, safe to show: nothing in it can move a cursor, change a colour or turn a line around."""

import re

# controls (C0 but for tab, C1), and the marks that turn the direction of text around
_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def visible(text: str) -> str:
    """The text with everything made visible that a terminal, a page or a log would act on."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
