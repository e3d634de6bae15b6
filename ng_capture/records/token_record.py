"""A token record to be written: typed values -> the line that NeMo Gym 0.7.0 writes (capture-files.md 1.1 and 2)."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import orjson

from ng_capture.errors import InvalidRecord
from ng_capture.records.defects import Defect
from ng_capture.records.fingerprint import (
    FINGERPRINT_VERSION,
    Beginnings,
)
from ng_capture.records.ids import BadTokenId, IdSequence, id_list, read_ids
from ng_capture.records.json_text import printable
from ng_capture.records.log_probs import check_log_probs
from ng_capture.records.token_entry import NEWEST_SCHEMA, TokenEntry, Unreadable, bad_prompt_id, decode_entry

# never trained, but no reader stops at them
_READABLE = frozenset({"logprob_all_zero", "logprob_positive", "logprob_sentinel"})


class TokenRecord(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One call as its line tells it; names and defaults are Gym's (capture-files.md 2.1).

    `prompt_token_ids` is the whole prompt, or what stands behind the parent's sequence where `prompt_is_delta`;
    `generation_log_probs` has one value for each generated id; each of the three is a list or an array. `output_items`
    are the response's items without their token fields; `created_at` in seconds since 1970; `cum_len` and `digest` are
    of the whole prompt and generation. `extras` are fields that Gym does not know and keeps.
    """

    rollout_id: str
    model_call_id: str
    prompt_token_ids: Sequence[int]
    generation_token_ids: Sequence[int]
    generation_log_probs: Sequence[float]
    model: str = ""
    routed_experts: object = None
    output_items: Sequence[Mapping[str, object]] = ()
    token_item_index: int | None = None
    response_id: str | None = None
    created_at: float = 0.0
    parent_call_id: str | None = None
    cum_len: int | None = None
    digest: str | None = None
    parent_resolution: Literal["root", "resolved", "unresolved"] | None = None
    parent_resolution_reason: str = ""
    continuation_fingerprint: str = ""
    continuation_context_len: int = 0
    continuation_context_digest: str = ""
    fingerprint_version: int | None = None
    prompt_is_delta: bool = False
    prefix_requested: bool = False
    prefix_supplied: bool = False
    extras: Mapping[str, object] = {}


def stamped(record: TokenRecord, request_items: Sequence[object], beginnings: Beginnings | None = None) -> TokenRecord:
    """A full record with its length, its digest and, of what was asked and answered, its fingerprints (2.3 and 2.5).

    `request_items` are those of `fingerprint.request_items`; where they have no fingerprint, none is stamped, and no
    later call finds this one by its content. `beginnings` are those of the rollout's other calls. Raises InvalidRecord
    for ids that are none.
    """
    record = measured(record)
    told = (beginnings or Beginnings()).digests([*request_items, *record.output_items])
    if told.fingerprint is None or len(told.begins) <= len(request_items):
        return record
    return msgspec.structs.replace(
        record,
        continuation_fingerprint=told.fingerprint,
        continuation_context_len=len(request_items),
        continuation_context_digest=told.begins[len(request_items)],
        fingerprint_version=FINGERPRINT_VERSION,
    )


def measured(record: TokenRecord) -> TokenRecord:
    """A full record with its length and its digest; raises InvalidRecord for ids that are none."""
    full = _sequence([*record.prompt_token_ids, *record.generation_token_ids])
    return msgspec.structs.replace(record, cum_len=len(full), digest=full.digest())


def as_delta(record: TokenRecord, parent_ids: Sequence[int]) -> TokenRecord:
    """The record with its prompt stored behind `parent_ids`, the parent's whole sequence (2.4).

    As it is where its parent is not resolved or its prompt does not begin with all of them.
    """
    held = len(parent_ids)
    if record.parent_resolution != "resolved" or list(record.prompt_token_ids[:held]) != list(parent_ids):
        return record
    return msgspec.structs.replace(record, prompt_token_ids=record.prompt_token_ids[held:], prompt_is_delta=True)


def encode_record(record: TokenRecord) -> bytes:
    """The canonical line without its line break; raises InvalidRecord for what would not be read back."""
    try:
        fields = msgspec.structs.asdict(msgspec.convert(_as_lists(msgspec.structs.asdict(record)), TokenRecord))
        _refuse(check_log_probs(fields["generation_log_probs"], len(fields["generation_token_ids"])).fault)
        extras = fields.pop("extras")
        taken = extras.keys() & {*fields, "schema_version"}
        if taken:
            raise InvalidRecord(f"extras name fields of the record: {', '.join(sorted(taken))}", "invalid_record")
        line = orjson.dumps({**extras, **fields, "schema_version": NEWEST_SCHEMA}, option=orjson.OPT_SORT_KEYS)
        readable_entry(line)
    except (msgspec.ValidationError, orjson.JSONEncodeError) as error:
        raise InvalidRecord(str(error), "invalid_record") from error
    except Unreadable as error:
        raise _invalid(error.defect) from error
    return line


def check_record(record: TokenRecord) -> None:
    """Raises InvalidRecord for a full record that would not be read back, but for its ids: `measured` has seen them.

    Nothing of its arrays is written for it.
    """
    generated = len(record.generation_token_ids)
    try:
        _refuse(check_log_probs(list(record.generation_log_probs), generated).fault)
    except Unreadable as error:
        raise _invalid(error.defect) from error
    encode_record(
        msgspec.structs.replace(
            record,
            prompt_token_ids=record.prompt_token_ids[:1],
            generation_token_ids=record.generation_token_ids[:1],
            generation_log_probs=record.generation_log_probs[:1],
        )
    )


def _as_lists(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value.tolist() if isinstance(value, array) else value for key, value in fields.items()}


def decode_record(line: bytes) -> TokenRecord:
    """The record of a line; raises Unreadable for one that is damaged or that Gym would not read back."""
    return record_of(readable_entry(line))


def record_of(entry: TokenEntry) -> TokenRecord:
    """The record of an entry whose prompt has not been placed; raises Unreadable where it has no such values."""
    fields = {key: value for key, value in entry.rest.items() if key in TokenRecord.__struct_fields__}
    extras = {key: value for key, value in entry.rest.items() if key not in fields and key != "schema_version"}
    arrays = {
        "prompt_token_ids": _ids(entry.stored.text),
        "generation_token_ids": _ids(entry.generation.text),
        "generation_log_probs": None if entry.log_probs is None else entry.log_probs.tolist(),
    }
    try:
        return msgspec.convert({**fields, **arrays, "extras": extras}, TokenRecord)
    except msgspec.ValidationError as error:
        raise Unreadable(Defect(reason="invalid_record", detail=str(error))) from None


def _ids(text: bytes) -> list[int]:
    """The ids of a text like `12,7,`; raises Unreadable where it is none."""
    try:
        return orjson.loads(b"[%b]" % text.removesuffix(b","))  # type: ignore[no-any-return]
    except orjson.JSONDecodeError:
        raise Unreadable(Defect(reason="damaged_line")) from None


def readable_entry(line: bytes) -> TokenEntry:
    """The entry of a line that Gym's reader takes, ids of the prompt included; raises Unreadable."""
    entry = decode_entry(line)
    check_readable(entry)
    return entry


def check_readable(entry: TokenEntry) -> None:
    """Raises Unreadable for an entry, not yet placed, that Gym's reader refuses."""
    for fault in entry.faults:
        _refuse(fault)
    try:
        read_ids(entry.stored.text)
    except BadTokenId as error:
        raise Unreadable(bad_prompt_id(error.position, error.found)) from None
    except ValueError:
        raise Unreadable(Defect(reason="damaged_line")) from None


def _refuse(fault: Defect | None) -> None:
    if fault is not None and fault.reason not in _READABLE:
        raise Unreadable(fault)


def _sequence(values: list[int]) -> IdSequence:
    try:
        return IdSequence.of(id_list(values))
    except (BadTokenId, TypeError) as error:
        raise InvalidRecord(printable(str(error)), "bad_token_id") from error


def _invalid(defect: Defect) -> InvalidRecord:
    position = "" if defect.position is None else f" at position {defect.position}"
    found = "" if defect.found is None else f", found {defect.found}"
    return InvalidRecord(f"{defect.detail or 'of the record'}{position}{found}", defect.reason)
