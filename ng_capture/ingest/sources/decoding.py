"""JSON of raw logs: NaN and integers of any size are taken, token fields that stand twice are noticed.

A log holds what a server or a proxy wrote, so it is read with less strictness than a record, and nothing is changed in
reading it (ingest.md 0, facts 4 and 5).
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import orjson

from ng_capture.records.json_text import is_text
from ng_capture.records.streams import stream_events

_TOKEN_FIELDS = (
    b"prompt_token_ids|generation_token_ids|generation_log_probs|token_ids|response_token_ids|completion_token_ids|"
    b"completion_logprobs|output_ids|input_ids|token_logprobs|input_token_logprobs|output_token_logprobs|logprobs|"
    b"logprob|token_id|tokens|prompt_tokens|samples|completion_probabilities|prompt_token_ids_b64|routed_experts|"
    b"input_messages|output_messages|mask|rollout_details|choices|response"
)
_NAMES = frozenset(_TOKEN_FIELDS.decode().split("|"))
_KEY = re.compile(rb'"(' + _TOKEN_FIELDS + rb')"\s*:')
_ESCAPED_LETTER = re.compile(rb"\\u00[3-7]")
_DIGITS = re.compile(rb"[0-9]+")
_DIGITS_ALIKE = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_NINETEEN_DIGITS = b"0" * 19


class Noticed(msgspec.Struct, frozen=True):
    """What a text has that its value no longer shows; `duplicate_key` names a token field that an object has twice."""

    duplicate_key: str | None = None
    lone_surrogate: bool = False

    def joined(self, *others: "Noticed") -> "Noticed":
        """What was noticed in any of these texts of one call."""
        every = (self, *others)
        duplicate = next((each.duplicate_key for each in every if each.duplicate_key), None)
        return Noticed(duplicate, any(each.lone_surrogate for each in every))


NOTHING_NOTICED = Noticed()


class RawJson(msgspec.Struct, frozen=True, eq=False):
    """A JSON value and what was noticed in its text."""

    value: object
    noticed: Noticed = NOTHING_NOTICED


class RawEvents(msgspec.Struct, frozen=True, eq=False):
    """The events of a stream and what was noticed in its text."""

    events: Sequence[Mapping[str, object]]
    noticed: Noticed = NOTHING_NOTICED


def decode_raw(data: bytes) -> RawJson:
    """The one JSON value that the bytes hold; raises ValueError.

    orjson reads it where it reads it right; the standard library where a number may be too big for it, where a token
    field may stand twice, and what orjson refuses: NaN, lone surrogates.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _decoded_exactly(data)
    if _has_big_number(data) or _may_repeat(data, value):
        return _decoded_exactly(data)
    return RawJson(value)


def decode_events(stream: str) -> RawEvents:
    """The events of a captured stream as `stream_events` reads them; none where the text is no stream."""
    events = stream_events(stream)
    if not events:
        return RawEvents(events)
    lines = stream.encode("utf-8", "surrogatepass").splitlines()
    duplicate = next(filter(None, map(_repeated_in_line, lines)), None)
    return RawEvents(events, Noticed(duplicate, "\\ud" in stream.lower() and not _all_text(events)))


def _repeated_in_line(line: bytes) -> str | None:
    """The token field that stands twice in one object of a line of data, where it may."""
    names = _KEY.findall(line)
    if len(names) == len(set(names)) and b"\\u00" not in line:
        return None
    try:
        return _decoded_exactly(line.removeprefix(b"data:")).noticed.duplicate_key
    except ValueError:
        return None


def _decoded_exactly(data: bytes) -> RawJson:
    repeated: list[str] = []

    def take(pairs: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(pairs)
        if len(value) < len(pairs):
            times = Counter(key for key, _ in pairs if key in _NAMES)
            repeated.extend(key for key, count in times.items() if count > 1)
        return value

    try:
        text = data.decode("utf-8")
        if text.startswith("\ufeff"):
            raise ValueError("a byte order mark")
        value = json.loads(text, object_pairs_hook=take)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    surrogate = rb"\ud" in data.lower() and not _all_text(value)
    return RawJson(value, Noticed(repeated[0] if repeated else None, surrogate))


def _all_text(value: object) -> bool:
    try:
        return is_text(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return True


def _has_big_number(data: bytes) -> bool:
    """True if a run of digits may be an integer beyond 64 bits: no digits of a fraction, twenty of them or a sign."""
    alike = data.translate(_DIGITS_ALIKE)
    place = alike.find(_NINETEEN_DIGITS)
    while place >= 0:
        run, before = _DIGITS.match(data, place), data[max(place - 1, 0) : place]
        end = run.end() if run else len(data)
        if before != b"." and (before == b"-" or end - place > 19):
            return True
        place = alike.find(_NINETEEN_DIGITS, end)
    return False


def _may_repeat(data: bytes, value: object) -> bool:
    """True unless every token field that the text has several times became a member of as many objects."""
    if _ESCAPED_LETTER.search(data):
        return True
    written = Counter(_KEY.findall(data))
    several = {name.decode(): count for name, count in written.items() if count > 1}
    if not several:
        return False
    kept = dict.fromkeys(several, 0)
    waiting: list[object] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            for key, member in each.items():
                if key in several:
                    kept[key] += 1
                if isinstance(member, dict | list):
                    waiting.append(member)
        elif isinstance(each, list) and each and isinstance(each[0], dict | list):
            waiting.extend(each)
    return kept != several
