"""Rows that were written beside those that should be there."""

from collections.abc import Callable, Iterator

NOTHING = object()
"""What stands beside a row that has none."""


def aligned(
    rows: Iterator[object], made: Iterator[object], alike: Callable[[object, object], bool]
) -> Iterator[tuple[object, object]]:
    """Each row and what it should be; a row too many or too few shifts only itself."""
    left, right = list[object](), list[object]()

    def ahead(waiting: list[object], source: Iterator[object], count: int) -> None:
        while len(waiting) < count and (each := next(source, NOTHING)) is not NOTHING:
            waiting.append(each)

    while True:
        ahead(left, rows, 2)
        ahead(right, made, 2)
        if not left and not right:
            return
        if not left:
            yield NOTHING, right.pop(0)
        elif not right or (not alike(left[0], right[0]) and len(left) > 1 and alike(left[1], right[0])):
            yield left.pop(0), NOTHING
        elif not alike(left[0], right[0]) and len(right) > 1 and alike(left[0], right[1]):
            yield NOTHING, right.pop(0)
        else:
            yield left.pop(0), right.pop(0)
