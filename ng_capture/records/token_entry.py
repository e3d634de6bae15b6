"""One line of `.tokens.jsonl` -> a token entry, or the defect that makes it unreadable (capture-files.md 2).

The prompt's array is cut out of the line before the rest is decoded: most of it repeats the line before, and the
placer compares it as text (performance.md, the hot path).
"""

import json
import re
import secrets
from array import array
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from ng_capture.records.defects import Defect
from ng_capture.records.ids import NO_IDS, BadTokenId, IdSequence, IdText, id_list
from ng_capture.records.json_text import decode_exact, decode_json, is_text, object_in, printable, told
from ng_capture.records.log_probs import check_log_probs

NEWEST_SCHEMA = 1
NOTE = "ng_capture"
"""The field of a record in which `ingest` keeps what NeMo Gym's records have no field for."""

NOTED = frozenset(
    {
        "beam_search",
        "duplicate_key",
        "generation_aborted",
        "multiple_token_items",
        "source_mismatch",
        "stream_truncated",
        "token_count_mismatch",
    }
)
"""Problems of a raw call that its record alone does not show."""

_PROMPT_KEY = b'"prompt_token_ids":'
_PROMPT_ARRAY = _PROMPT_KEY + b"["
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_NAMES = ("rollout_id", "model_call_id", "model", "response_id", "parent_call_id", "parent_resolution_reason")
_TOKEN_KEYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
# not to be found in any file: its coming back under the top-level key proves that the cut array was the top-level one
_CUT = secrets.token_hex(16)
_CUT_TEXT = _PROMPT_KEY + b'"' + _CUT.encode() + b'"'


class EntryFields(msgspec.Struct, frozen=True):
    """The fields of a record that judging needs, as captured; names and defaults are Gym's (capture-files.md 2.1)."""

    rollout_id: str
    model_call_id: str
    schema_version: int = 1
    model: str = ""
    routed_experts: Any = None
    output_items: Any = []
    token_item_index: int | None = None
    response_id: str | None = None
    created_at: float = 0.0
    parent_call_id: str | None = None
    cum_len: int | None = None
    digest: str | None = None
    parent_resolution: Literal["root", "resolved", "unresolved"] | None = None
    parent_resolution_reason: str = ""
    continuation_fingerprint: str = ""
    fingerprint_version: int | None = None
    prompt_is_delta: bool = False
    prefix_requested: bool = False
    prefix_supplied: bool = False
    weight_version: Any = None


class PromptText(NamedTuple):
    """The ids of a stored prompt as text: what stands from `start` to the bracket at `end` of `data`."""

    data: bytes
    start: int
    end: int

    def from_(self, position: int) -> bytes:
        """The ids from a position on, a comma behind each."""
        return self.data[position : self.end] + b"," if position < self.end else b""

    @property
    def text(self) -> bytes:
        return self.from_(self.start)

    def alone(self) -> "PromptText":
        """The same ids without the line that they stood in."""
        return PromptText(self.data[self.start : self.end + 1], 0, self.end - self.start)


NO_PROMPT = PromptText(b"]", 0, 0)


class TokenEntry(msgspec.Struct, frozen=True, eq=False):
    """One captured call.

    `stored` is the prompt as text until the placer has made `prompt` of it, or `suffix` where the record is a delta.
    `prompt` and `full` (prompt and generation) are None for a delta and where `faults` tells of a bad id.
    `rest` is the decoded object without the three arrays, unknown keys included.
    """

    fields: EntryFields
    rest: Mapping[str, object]
    stored: PromptText
    generation: IdText
    generated: int
    log_probs: "array[float] | None"
    faults: tuple[Defect, ...]
    file: str = ""
    line: int = 0
    byte: int = 0
    prompt: IdSequence | None = None
    full: IdSequence | None = None
    suffix: IdText = NO_IDS

    @property
    def call_id(self) -> str:
        return self.fields.model_call_id

    @property
    def noted(self) -> tuple[Defect, ...]:
        """What `ingest` found wrong with the raw call."""
        problems = object_in(self.rest.get(NOTE)).get("problems")
        told = [name for name in problems if isinstance(name, str)] if isinstance(problems, list) else []
        return tuple(Defect(reason=name, detail="as its raw call was read") for name in told if name in NOTED)

    @property
    def choice_of(self) -> str | None:
        """The raw call that had several answers, of which this is one; None for any other record."""
        several = object_in(self.rest.get(NOTE)).get("choices")
        return self.call_id.rpartition("#")[0] if type(several) is int else None

    def locate(self, defect: Defect) -> Defect:
        """The defect with the place and the call of this entry."""
        return defect.at(file=self.file, line=self.line, byte=self.byte, call=self.call_id)


class Unreadable(ValueError):
    """A line that holds no record; `defect` says why."""

    def __init__(self, defect: Defect) -> None:
        super().__init__(defect.reason)
        self.defect = defect


class _Decoded(NamedTuple):
    """A line taken apart: the object without its prompt, the prompt, what was wrong."""

    rest: dict[str, object]
    stored: PromptText
    faults: list[Defect]


def decode_entry(data: bytes, *, file: str = "", line: int = 0, byte: int = 0) -> TokenEntry:
    """The entry of one line, which stands at that place; raises Unreadable."""
    decoded = _decode_cut(data)
    if decoded is None:
        decoded = _decode_whole(data)
    rest, stored, faults = decoded
    fields = _fields(rest, surrogate=bool(faults))
    generation = rest.pop("generation_token_ids", None)
    log_probs = rest.pop("generation_log_probs", None)
    if not isinstance(generation, list) or not isinstance(log_probs, list):
        raise Unreadable(_invalid("generation_token_ids and generation_log_probs must be lists", fields.model_call_id))
    try:
        ids = id_list(generation)
    except BadTokenId as error:
        exact = _exact(data, "generation_token_ids")[error.position]
        ids = NO_IDS
        faults.append(Defect(reason="bad_token_id", position=error.position, found=told(exact), detail="generation"))
    checked = check_log_probs(log_probs, len(generation))
    if checked.fault is not None:
        faults.append(checked.fault)
    faults.extend(_inconsistencies(fields))
    return TokenEntry(
        fields=fields,
        rest=rest,
        stored=stored,
        generation=ids,
        generated=len(generation),
        log_probs=checked.values,
        faults=tuple(faults),
        file=file,
        line=line,
        byte=byte,
    )


def _decode_cut(data: bytes) -> _Decoded | None:
    """Decode the line without its prompt, or None where that is not safe."""
    start = data.find(_PROMPT_ARRAY)
    if start < 0:
        return None
    first = start + len(_PROMPT_ARRAY)
    end = data.find(b"]", first)
    line = b"%b%b%b" % (data[:start], _CUT_TEXT, data[end + 1 :])
    # a token field that stands twice, if only in another spelling of its name, is for the whole decoding to find
    if line.count(b'_token_ids"') > 2 or line.count(b'generation_log_probs"') > 1 or _ESCAPED_LETTER.search(line):
        return None
    try:
        value, surrogate = decode_json(line)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.pop("prompt_token_ids", None) != _CUT:
        return None
    return _Decoded(value, PromptText(data, first, end), [Defect(reason="lone_surrogate")] if surrogate else [])


def _decode_whole(data: bytes) -> _Decoded:
    try:
        value, surrogate = decode_json(data)
    except ValueError:
        raise Unreadable(Defect(reason="damaged_line")) from None
    if not isinstance(value, dict):
        raise Unreadable(Defect(reason="damaged_line", detail="JSON, but no object"))
    faults = [Defect(reason="lone_surrogate")] if surrogate else []
    faults += [Defect(reason="duplicate_key", detail=key) for key in _twice_at_top(data) if key in _TOKEN_KEYS]
    prompt = value.pop("prompt_token_ids", None)
    if not isinstance(prompt, list):
        raise Unreadable(_invalid("prompt_token_ids must be a list", value.get("model_call_id")))
    try:
        text = id_list(prompt).text[:-1] + b"]"
        return _Decoded(value, PromptText(text, 0, len(text) - 1), faults)
    except BadTokenId as error:
        exact = _exact(data, "prompt_token_ids")[error.position]
        return _Decoded(value, NO_PROMPT, [*faults, bad_prompt_id(error.position, exact)])


def _exact(data: bytes, key: str) -> list[object]:
    """A list of the line with large integers kept; raises Unreadable where the uncut line is no JSON."""
    try:
        return decode_exact(data)[key]  # type: ignore[no-any-return]
    except ValueError:
        raise Unreadable(Defect(reason="damaged_line")) from None


def bad_prompt_id(position: int, found: object) -> Defect:
    """The defect of an id of the prompt."""
    return Defect(reason="bad_token_id", position=position, found=told(found), detail="prompt")


def _fields(rest: dict[str, object], *, surrogate: bool) -> EntryFields:
    version = rest.get("schema_version", 1)
    call = rest.get("model_call_id")
    if type(version) is int and version > NEWEST_SCHEMA:
        named = printable(call) if isinstance(call, str) else None
        raise Unreadable(Defect(reason="schema_too_new", found=told(version), expected=NEWEST_SCHEMA, call=named))
    if version != NEWEST_SCHEMA or type(version) is not int:
        raise Unreadable(_invalid(f"schema_version {version!r} was never written", call))
    try:
        fields = msgspec.convert(rest, EntryFields)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise Unreadable(_invalid(str(error), call)) from None
    items = fields.output_items
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Unreadable(_invalid("output_items must be a list of objects", call))
    # half of a surrogate pair is harmless in what was said, not in what names a call or a model
    for name in _NAMES if surrogate else ():
        value = getattr(fields, name)
        if isinstance(value, str) and not is_text(value):
            raise Unreadable(_invalid(f"{name} holds half of a surrogate pair"))
    return fields


def _inconsistencies(fields: EntryFields) -> list[Defect]:
    """Violations of the rules of capture-files.md 2.1 by a record whose shape is right."""
    found = []
    items, index = fields.output_items, fields.token_item_index
    if index is not None and not 0 <= index < len(items):
        found.append(_invalid(f"token_item_index {index} outside {len(items)} output items"))
    carriers = sum("generation_token_ids" in item for item in items)
    if index is None and carriers > 1:
        found.append(Defect(reason="multiple_token_items", count=carriers))
    named = bool(fields.parent_call_id)
    if fields.parent_resolution == "resolved" and not named:
        found.append(_invalid("parent_resolution is resolved, but no parent is named"))
    if fields.parent_resolution in ("root", "unresolved") and fields.parent_call_id is not None:
        found.append(_invalid(f"parent_resolution is {fields.parent_resolution}, but a parent is named"))
    if fields.prompt_is_delta and not (named and fields.parent_resolution == "resolved"):
        found.append(_invalid("a delta prompt needs a resolved parent"))
    return found


def _invalid(detail: str, call: object = None) -> Defect:
    return Defect(reason="invalid_record", detail=detail, call=printable(call) if isinstance(call, str) else None)


def _twice_at_top(data: bytes) -> set[str]:
    """Keys that stand twice in the outermost object."""
    last: list[tuple[str, object]] = []

    def keep(pairs: list[tuple[str, object]]) -> None:
        last[:] = pairs

    json.loads(data, object_pairs_hook=keep)
    keys = [key for key, _ in last]
    return {key for key in keys if keys.count(key) > 1}
