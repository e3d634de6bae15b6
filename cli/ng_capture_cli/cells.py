"""Text in the cells of a terminal: wide characters take two, what cannot be printed is made visible first."""

from rich.cells import cell_len, set_cell_size

__all__ = ["cell_len", "cut", "fit"]

_MORE = "…"


def fit(text: str, width: int) -> str:
    """The text in exactly so many cells: padded, or cut with an ellipsis."""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + _MORE if width > 0 else ""
    return text + " " * (width - length)


def cut(text: str, width: int) -> str:
    """The text in at most so many cells."""
    return text if cell_len(text) <= width else fit(text, width)
