"""The small files beside the records: state, intents, incomplete marks (capture-files.md 1.2, 1.6, 1.7)."""

import re

import msgspec

from ng_capture.records.json_text import decode_json, is_text

_LINE_END = re.compile(rb"\r\n|\n|\r")


class Refusal(msgspec.Struct, frozen=True):
    """A call that the engine refused; it settles the intent like a record does."""

    model_call_id: str


class StoreState(msgspec.Struct, frozen=True):
    """`.tokens.state.json` as far as judging and sealing need it; a missing file means the defaults."""

    frozen: bool = False
    retired: bool = False
    incomplete: bool = False
    snapshot_id: str = ""
    version: int = 0
    entry_digests: dict[str, str] | None = None
    indexed_size: int | None = None
    refusals: tuple[Refusal, ...] = ()

    @property
    def has_index(self) -> bool:
        """False for the older layout, which is indexed from byte 0 (case S37)."""
        return self.entry_digests is not None and self.indexed_size is not None


class NamedLine(msgspec.Struct, frozen=True):
    """A model-call id on a line of a sidecar; an empty id is a mark that names no call."""

    line: int
    byte: int
    call_id: str


def can_be_named(call_id: str) -> bool:
    """True if an id is alone on a line of its own, as the files beside the records hold it (capture-files.md 1.6)."""
    return bool(call_id) and call_id == call_id.strip() and not {"\n", "\r"} & {*call_id} and is_text(call_id)


def decode_state(data: bytes) -> StoreState:
    """The state object; raises ValueError for anything that is no readable state."""
    value, _ = decode_json(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    for key, kind in (("entry_digests", dict), ("indexed_size", int)):
        if key in value and type(value[key]) is not kind:
            del value[key]
    state = msgspec.convert(value, StoreState)
    if not 0 <= (state.indexed_size or 0) < 2**63 or not 0 <= state.version < 2**63:
        raise ValueError("a size or version that no writer counts to")
    return state


def decode_call_lines(data: bytes) -> list[NamedLine]:
    """One entry a line, blank ones included; bytes that are no UTF-8 stay visible as replacement characters."""
    lines, start = [], 0
    for number, piece in enumerate(_LINE_END.split(data), 1):
        if piece or _LINE_END.match(data, start):
            lines.append(NamedLine(number, start, piece.strip().decode("utf-8", "replace")))
        end = start + len(piece)
        separator = _LINE_END.match(data, end)
        start = separator.end() if separator else end
    return lines
