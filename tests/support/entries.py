"""Token records as NeMo Gym 0.7.0 writes them (capture-files.md 2.1): every field, keys sorted, true digests."""

import hashlib
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson


def record(
    call: str, prompt: Sequence[int], generation: Sequence[int], *, parent: str | None = None, **fields: Any
) -> dict[str, Any]:
    """A full record of rollout `0-0`: a root, or a call that extends `parent`; `fields` replace what they name."""
    entry = {
        "continuation_context_digest": "",
        "continuation_context_len": 0,
        "continuation_fingerprint": "",
        "created_at": 1.0,
        "cum_len": len(prompt) + len(generation),
        "digest": digest(array("Q", [*prompt, *generation])),
        "fingerprint_version": None,
        "generation_log_probs": [-0.5] * len(generation),
        "generation_token_ids": list(generation),
        "model": "policy",
        "model_call_id": call,
        "output_items": [says(f"this is {call}")],
        "parent_call_id": parent,
        "parent_resolution": "root" if parent is None else "resolved",
        "parent_resolution_reason": "",
        "prefix_requested": False,
        "prefix_supplied": False,
        "prompt_is_delta": False,
        "prompt_token_ids": list(prompt),
        "response_id": f"resp-{call}",
        "rollout_id": "0-0",
        "routed_experts": None,
        "schema_version": 1,
        "token_item_index": 0,
    }
    return entry | fields


def says(text: str, **fields: Any) -> dict[str, Any]:
    """An output item that the model wrote."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]} | fields


def lines(records: Iterable[dict[str, Any]]) -> bytes:
    """The records as a `.tokens.jsonl` holds them."""
    return b"".join(orjson.dumps(each, option=orjson.OPT_SORT_KEYS) + b"\n" for each in records)


def digest(ids: "array[int]") -> str:
    """The digest of a sequence of ids (`bugs/README.md`)."""
    sha256 = hashlib.sha256(b"nemo-gym-tokens")
    if ids:
        big_endian = array("Q", ids)
        if sys.byteorder == "little":
            big_endian.byteswap()
        sha256.update(b"\x01" + len(ids).to_bytes(8, "big"))
        sha256.update(big_endian)
    return sha256.hexdigest()


def chain(
    rollout: str, *, calls: int, first_prompt: int, generation: int, growth: int, extra: dict[str, Any] | None = None
) -> Iterator[bytes]:
    """The lines of one healthy rollout of `calls` calls that extend one another; `extra` goes into the last record.

    Ids repeat nowhere near, so that no prefix fits by accident. Long prompts are kept as text that only grows.
    """
    held, text, made = array("Q"), bytearray(), 0
    cut = "prompt_token_ids"
    for number in range(calls):
        new = _ids(made, first_prompt if number == 0 else growth)
        sampled = _ids(made + len(new), generation)
        made += len(new) + len(sampled)
        held.extend(new)
        text += _text(new)
        prompt = bytes(text[:-1])
        held.extend(sampled)
        text += _text(sampled)
        parent = None if number == 0 else f"{rollout}-c{number - 1}"
        fields = record(
            f"{rollout}-c{number}", (), sampled, parent=parent, rollout_id=rollout, created_at=float(number)
        )
        fields |= {"cum_len": len(held), "digest": digest(held)} | ((extra or {}) if number == calls - 1 else {})
        line = orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)
        yield line.replace(f'"{cut}":[]'.encode(), f'"{cut}":['.encode() + prompt + b"]", 1) + b"\n"


def _ids(start: int, count: int) -> "array[int]":
    return array("Q", ((number * 7919 + 11) % 150_001 for number in range(start, start + count)))


def _text(ids: "array[int]") -> bytes:
    return b"".join(b"%d," % each for each in ids)
