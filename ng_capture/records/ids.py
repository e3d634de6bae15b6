"""Token id sequences that share their beginnings, with a prefix test on bytes (performance.md, the hot path).

A sequence is never copied to be extended: calls that extend one another stand on one `Strand`, whose decimal text and
64-bit ids only grow; a branch begins a strand of its own on the sequence it leaves. Text has one spelling, `12,7,`:
decimal, a comma behind each id.
"""

import hashlib
import sys
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import orjson

from ng_capture.records.json_text import decode_exact, encode_json

MAX_TOKEN_ID = 2**31 - 1
DIGEST_DOMAIN = b"nemo-gym-tokens"

_ID_TEXT = b"0123456789,"
_PIECE = 1 << 18
_BLOCK = 1 << 13
_LITTLE_ENDIAN = sys.byteorder == "little"


class BadTokenId(ValueError):
    """A value that is no plain integer from 0 to 2^31 - 1: `position` in its list, and its text."""

    def __init__(self, position: int, found: object) -> None:
        super().__init__(f"{found} at position {position}")
        self.position = position
        self.found = found


class IdText(NamedTuple):
    """Some ids: their text, `12,7,`, and their values, 64 bits each in the byte order of the digest."""

    text: bytes
    values: "array[int]"


NO_IDS = IdText(b"", array("Q"))


class Strand:
    """Append-only ids that stand behind `base`: their text and, in the byte order of the digest, their values."""

    __slots__ = ("base", "ids", "text")

    def __init__(self, base: "IdSequence | None" = None) -> None:
        self.base = base
        self.text = bytearray()
        self.ids: array[int] = array("Q")


class IdSequence:
    """Immutable sequence of token ids: the first `own` ids of a strand behind the strand's base."""

    __slots__ = ("_length", "_own", "_strand", "_text_end")

    def __init__(self, strand: Strand, own: int, text_end: int) -> None:
        self._strand = strand
        self._own = own
        self._text_end = text_end
        self._length = own + (len(strand.base) if strand.base is not None else 0)

    @classmethod
    def empty(cls) -> Self:
        return cls(Strand(), 0, 0)

    @classmethod
    def of(cls, ids: IdText) -> "IdSequence":
        """The sequence of some ids."""
        return cls.empty().extended(ids)

    def __len__(self) -> int:
        return self._length

    def extended(self, ids: IdText) -> "IdSequence":
        """This sequence and more ids behind it."""
        strand = self._strand
        if self._own != len(strand.ids):
            strand = Strand(self)
        strand.text += ids.text
        strand.ids.extend(ids.values)
        return IdSequence(strand, len(strand.ids), len(strand.text))

    def text_end_in(self, data: bytes, start: int) -> int | None:
        """Where this sequence ends in the JSON array whose first id stands at `start`, or None if others stand there.

        The end is behind the comma that follows, or at the bracket.
        """
        position = start
        for strand, _, end in self._spans():
            # all but the last comma, which may be a bracket here
            with memoryview(strand.text)[: end - 1 if end else 0] as own:
                if not data.startswith(own, position):
                    return None
            position += end
            if end and data[position - 1] not in b",]":
                return None
        if position > start and data[position - 1 : position] == b"]":
            return position - 1
        # a comma right before the bracket is no JSON
        return None if position > start and data[position : position + 1] == b"]" else position

    def starts_with(self, other: "IdSequence") -> bool:
        """True if the other sequence, all of it, is where this one begins."""
        if len(other) > len(self):
            return False
        shared = next((own for strand, own, _ in self._spans() if strand is other._strand), -1)
        return shared >= other._own or self.common_prefix(other) == len(other)

    def common_prefix(self, other: "IdSequence") -> int:
        """How many ids the two have in common at the start."""
        mine, theirs = self._bytes(), other._bytes()
        limit = min(len(self), len(other))
        low = 0
        while low < limit:
            high = min(low + _BLOCK, limit)
            if mine.read(low, high) != theirs.read(low, high):
                break
            low = high
        else:
            return limit
        high = min(low + _BLOCK, limit)
        while high - low > 1:
            middle = (low + high) // 2
            if mine.read(low, middle) == theirs.read(low, middle):
                low = middle
            else:
                high = middle
        return low

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < self._length:
            raise IndexError(index)
        return int.from_bytes(self._bytes().read(index, index + 1), "big")

    def digest(self, length: int | None = None) -> str:
        """Gym's digest of the sequence, or of its first `length` ids (capture-files.md 2.3)."""
        left = self._length if length is None else length
        state = hashlib.sha256(DIGEST_DOMAIN)
        if left:
            state.update(b"\x01" + left.to_bytes(8, "big"))
        for strand, own, _ in self._spans():
            with memoryview(strand.ids)[: min(own, left)] as ids:
                state.update(ids)
                left -= len(ids)
        return state.hexdigest()

    def json_items(self) -> list[memoryview]:
        """The text between the brackets of a JSON array, in pieces that copy nothing."""
        pieces = [memoryview(strand.text)[:end] for strand, _, end in self._spans() if end]
        if pieces:
            pieces[-1] = pieces[-1][:-1]
        return pieces

    def values(self) -> "array[int]":
        """The ids as a native array of 64 bits."""
        ids: array[int] = array("Q")
        for strand, own, _ in self._spans():
            ids.extend(strand.ids[:own])
        if _LITTLE_ENDIAN:
            ids.byteswap()
        return ids

    def _spans(self) -> list[tuple[Strand, int, int]]:
        """Strands from the first to the own one, each with the ids and text bytes that belong to this sequence."""
        spans = []
        here: IdSequence | None = self
        while here is not None:
            spans.append((here._strand, here._own, here._text_end))
            here = here._strand.base
        spans.reverse()
        return spans

    def _bytes(self) -> "_IdBytes":
        return _IdBytes(self._spans())


class _IdBytes:
    """The ids of some spans as bytes in the order of the digest, read piece by piece."""

    def __init__(self, spans: list[tuple[Strand, int, int]]) -> None:
        self._spans = spans

    def read(self, start: int, stop: int) -> bytes:
        return b"".join(self._pieces(start, stop))

    def _pieces(self, start: int, stop: int) -> Iterator[bytes]:
        first = 0
        for strand, own, _ in self._spans:
            low, high = max(start - first, 0), min(stop - first, own)
            if low < high:
                yield strand.ids[low:high].tobytes()
            first += own


def parse_ids(text: bytes) -> IdText:
    """The ids that a text `12,7,` spells; raises BadTokenId.

    Read in pieces: a list of boxed integers takes ten times the memory of its text.
    """
    if len(text) <= _PIECE:
        return IdText(text, _checked(orjson_list(text), text)) if text else NO_IDS
    ids: array[int] = array("Q")
    start = 0
    while start < len(text):
        end = text.find(b",", start + _PIECE) + 1 or len(text)
        piece = text[start:end]
        try:
            ids.extend(_checked(orjson_list(piece), piece))
        except BadTokenId as error:
            raise BadTokenId(len(ids) + error.position, error.found) from None
        start = end
    return IdText(text, ids)


def read_ids(text: bytes) -> IdText:
    """The ids that a text spells in any way that JSON allows; raises BadTokenId, ValueError for what is no JSON."""
    try:
        return parse_ids(text)
    except BadTokenId:
        # spaces between good ids fail as text too, so only the values decide; exact, where they are large
        return id_list(decode_exact(b"[%b]" % text[:-1]))


def id_list(values: list[Any]) -> IdText:
    """The ids of a decoded list; raises BadTokenId for anything but plain integers in range."""
    if not values:
        return NO_IDS
    text = encode_json(values)[1:-1] + b","
    return IdText(text, _checked(values, text))


def orjson_list(text: bytes) -> list[Any]:
    """The values between the commas; whatever is no list of JSON values comes back as its parts."""
    try:
        return orjson.loads(b"[%b]" % text[:-1])  # type: ignore[no-any-return]
    except orjson.JSONDecodeError:
        return list(text[:-1].decode("utf-8", "replace").split(","))


def _checked(values: list[Any], text: bytes) -> "array[int]":
    """The values as an array, if the text has nothing but digits and commas and no value needs more than 31 bits."""
    if not text.translate(None, _ID_TEXT):
        try:
            ids = array("Q", values)
        except (TypeError, OverflowError):
            ids = array("Q")
        if _LITTLE_ENDIAN:
            ids.byteswap()
        if len(ids) == len(values) and _fits(ids):
            return ids
    for position, value in enumerate(values):
        if type(value) is not int or not 0 <= value <= MAX_TOKEN_ID:
            raise BadTokenId(position, value)
    raise BadTokenId(0, "a spelling that is not canonical")


def _fits(ids: "array[int]") -> bool:
    """True if every value needs 31 bits at most: the upper bytes in columns, far quicker than max()."""
    data, zeros = ids.tobytes(), bytes(len(ids))
    return data[::8] == data[1::8] == data[2::8] == data[3::8] == zeros and data[4::8].isascii()
