"""The beginning of a file as far as recognising needs it: which keys its first JSON values have."""

import re
from collections.abc import Iterator

import msgspec

_DEPTH = 3
# possessive, and a string that is cut goes on to the end: no byte of it is looked at twice
_STRING_OR_BRACKET = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)(?:"\s*(:?)|\\?\Z)|[\[\]{}]', re.DOTALL)


class Head(msgspec.Struct, frozen=True):
    """The name of a file, and the keys of each of its first values as paths (`log.entries`); lists add no level."""

    name: str
    values: tuple[frozenset[str], ...] = ()

    def has(self, *paths: str) -> bool:
        """True if the first value has all of these keys."""
        return bool(self.values) and self.values[0].issuperset(paths)

    def has_any(self, *paths: str) -> bool:
        """True if the first value has one of these keys."""
        return bool(self.values) and not self.values[0].isdisjoint(paths)

    @property
    def first(self) -> frozenset[str]:
        return self.values[0] if self.values else frozenset()


def sketch(name: str, text: bytes) -> Head:
    """The head of a file; its text may end anywhere, and be no JSON."""
    return Head(name, tuple(_values(text)))


def _values(text: bytes) -> Iterator[frozenset[str]]:
    paths: set[str] = set()
    # one name for every object that is open, "" until a key is read; a list has the name of what holds it
    inside: list[str] = []
    kinds: list[bytes] = []
    for match in _STRING_OR_BRACKET.finditer(text):
        mark = match[0][:1]
        if mark in b"{[":
            kinds.append(mark)
            if mark == b"{":
                inside.append("")
        elif mark in b"}]" and kinds:
            if kinds.pop() == b"{" and inside:
                inside.pop()
            if not kinds:
                yield frozenset(paths)
                paths = set()
        elif match[2] and inside:
            inside[-1] = match[1].decode("utf-8", "replace")
            if len(inside) <= _DEPTH:
                paths.add(".".join(inside))
    if paths:
        yield frozenset(paths)
