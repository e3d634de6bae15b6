"""Text in the cells of a terminal: wide characters take two, what cannot be printed is made visible first."""

from rich.cells import cell_len, set_cell_size

from ng_capture_cli.terminal import safe

_MORE = "…"


def shown(text: str) -> str:
    """The text on one line: line breaks and tabs as escapes, everything unsafe made visible."""
    return safe(text.replace("\\", "\\\\") if "\n" in text or "\t" in text else text).replace("\t", "\\t")


def fit(text: str, width: int, *, right: bool = False) -> str:
    """The text in exactly so many cells: padded, or cut with an ellipsis."""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + _MORE if width > 0 else ""
    return " " * (width - length) + text if right else text + " " * (width - length)


def cut(text: str, width: int) -> str:
    """The text in at most so many cells."""
    return text if cell_len(text) <= width else fit(text, width)
