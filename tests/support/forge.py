"""Captures as NeMo Gym 0.7.0 writes them, from a readable description: a rollout is a tree of calls.

    forge = Forge("r-1")
    a = forge.root([1, 2], [3])        # a first call: prompt 1 2, generated 3
    b = a.then([4], [5])               # continues it: prompt 1 2 3 4
    c = b.retry([6])                   # the same prompt asked again: another answer
    d = c.then([7], [])                # generated nothing
    s = a.then([9], [10])              # a branch is one more continuation
    r = forge.root([50], [51])         # a sub-agent, or what goes on after a compaction
    u = forge.unresolved([60], [61])   # the server could not tell the parent
    x = c.broken([1, 8], [9])          # names c as its parent, but does not extend it

    forge.write(directory)             # r-1.tokens.jsonl, .tokens.state.json, .tokens.intents
    forge.write(directory, intents=False, raw=True, compression=".gz")
    write_rows(path, [forge.row(c)])   # finished rows: the scored response was c's

`Forge(..., delta=True)` stores the prompts of continuations as deltas. `call.prompt`, `call.generation` and
`call.log_probs` are what truly happened, the whole prompt always; `call.fields` is what its record says otherwise, so
that a fault is one line: `b.fields["digest"] = "0" * 64`. Fields can be given when a call is made, too:
`a.then([4], [5], id="B", created_at=9.0, model="judge")`. Everything follows from the description: no clock, no chance.
"""

import gzip
import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import zstandard

from ng_capture.records.fingerprint import FINGERPRINT_VERSION, assistant_fingerprint, conversation_digest

FIRST_MOMENT = 1_800_000_000.0
MODEL = "policy-8b"

Row = dict[str, Any]
Files = dict[str, bytes]
"""Names and bytes."""


@dataclass(eq=False)
class Call:
    """One model call as it truly was, and in `fields` what its record says otherwise."""

    forge: "Forge"
    number: int
    id: str
    prompt: list[int]
    generation: list[int]
    parent: "Call | None"
    request: list[dict[str, Any]]
    fields: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        link = f"<{self.parent.name}" if self.parent else ""
        return f"{self.name}{link}: {self.prompt} -> {self.generation}" + (f" {self.fields}" if self.fields else "")

    @property
    def name(self) -> str:
        """Its id, short enough to read."""
        return f"#{self.number}({self.id[:4]})"

    @property
    def full(self) -> list[int]:
        return self.prompt + self.generation

    @property
    def joined(self) -> bool:
        """True for a first call and for one that truly extends its parent."""
        if self.parent is None:
            return self.fields.get("parent_resolution") != "unresolved"
        return self.prompt[: len(self.parent.full)] == self.parent.full

    @property
    def log_probs(self) -> list[float]:
        """Captured log probabilities: no two tokens of a rollout have the same."""
        return [-(self.number + 1) / 4 - offset / 4096 for offset in range(len(self.generation))]

    @property
    def response_id(self) -> str:
        return f"resp_{self.id}"

    @property
    def output(self) -> list[dict[str, Any]]:
        """The response's items: what the call answered, told apart by its id."""
        content = [{"type": "output_text", "text": f"answer {self.id}", "annotations": []}]
        message = {"type": "message", "id": f"msg_{self.id}", "role": "assistant", "status": "completed"}
        return [{**message, "content": content}]

    def then(self, added: Sequence[int], generation: Sequence[int], **fields: Any) -> "Call":
        """A call whose prompt is this one's whole sequence and some ids behind it."""
        return self.forge._add([*self.full, *added], generation, self, fields)

    def retry(self, generation: Sequence[int], **fields: Any) -> "Call":
        """The same request sent again."""
        return self.forge._add(self.prompt, generation, self.parent, {**self.fields, **fields}, self.request)

    def broken(self, prompt: Sequence[int], generation: Sequence[int], **fields: Any) -> "Call":
        """A call that names this one as its parent, whatever its prompt is."""
        return self.forge._add(prompt, generation, self, {"prompt_is_delta": False, **fields})

    def record(self) -> Row:
        """The token record, every field of schema 1."""
        told: Row = {
            "schema_version": 1,
            "rollout_id": self.forge.rollout_id,
            "model_call_id": self.id,
            "model": MODEL,
            "prompt_token_ids": self.prompt,
            "generation_token_ids": self.generation,
            "generation_log_probs": self.log_probs,
            "routed_experts": None,
            "output_items": self.output,
            "token_item_index": 0,
            "response_id": self.response_id,
            "created_at": FIRST_MOMENT + self.number,
            "parent_call_id": self.parent.id if self.parent else None,
            "cum_len": len(self.full),
            "digest": token_digest(self.full),
            "parent_resolution": "resolved" if self.parent else "root",
            "parent_resolution_reason": "",
            "continuation_fingerprint": assistant_fingerprint([*self.request, *self.output]),
            "continuation_context_len": len(self.request),
            "continuation_context_digest": conversation_digest(self.request),
            "fingerprint_version": FINGERPRINT_VERSION,
            "prompt_is_delta": self.forge.delta and self.parent is not None,
            "prefix_requested": False,
            "prefix_supplied": False,
        } | self.fields
        if told["prompt_is_delta"] and self.parent and "prompt_token_ids" not in self.fields:
            told["prompt_token_ids"] = self.prompt[len(self.parent.full) :]
        return told

    def line(self) -> bytes:
        """The record as it stands on disk, without the line break."""
        return canonical(self.record())

    def raw(self, **values: Any) -> Row:
        """The exchange as evaluation capture records it."""
        read, written = len(self.prompt), len(self.generation)
        usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
        response = {"id": self.response_id, "object": "response", "status": "completed", "model": MODEL}
        started = FIRST_MOMENT + self.number - 0.5
        return {
            "model_call_id": self.id,
            "dialect": "responses",
            "model_ref": {"type": "responses_api_models", "name": "policy_model"},
            "started_at": started,
            "completed_at": started + 0.5,
            "latency_ms": 500.0,
            "status_code": 200,
            "error_category": None,
            "request": {"model": MODEL, "input": self.request},
            "response": {**response, "output": self.output, "usage": usage},
            **values,
        }


class Forge:
    """One rollout; `calls` in the order in which they were made."""

    def __init__(self, rollout_id: str = "r-1", *, delta: bool = False) -> None:
        self.rollout_id = rollout_id
        self.delta = delta
        self.calls: list[Call] = []

    def __repr__(self) -> str:
        return f"{self.rollout_id}{' in deltas' if self.delta else ''}: {self.calls}"

    def root(self, prompt: Sequence[int], generation: Sequence[int], **fields: Any) -> Call:
        """A call without a parent."""
        return self._add(prompt, generation, None, fields)

    def unresolved(self, prompt: Sequence[int], generation: Sequence[int], **fields: Any) -> Call:
        """A call whose parent the server could not tell."""
        told = {"parent_resolution": "unresolved", "parent_resolution_reason": "no_match"}
        return self._add(prompt, generation, None, told | fields)

    def _add(
        self, prompt: Sequence[int], generation: Sequence[int], parent: Call | None, fields: Row, request: Any = None
    ) -> Call:
        number = len(self.calls)
        call_id = fields.pop("id", None) or hashlib.sha256(f"{self.rollout_id}/{number}".encode()).hexdigest()[:32]
        if request is None:
            before = [*parent.request, *parent.output] if parent else []
            request = [*before, {"role": "user", "content": f"request {number}"}]
        call = Call(self, number, call_id, list(prompt), list(generation), parent, request, fields)
        self.calls.append(call)
        return call

    def lines(self) -> list[bytes]:
        return [call.line() for call in self.calls]

    def state(self, **values: Any) -> Row:
        """The state that the writer leaves after its last append."""
        lines = self.lines()
        digests = {call.id: hashlib.sha256(line).hexdigest() for call, line in zip(self.calls, lines, strict=True)}
        state = {"frozen": False, "retired": False, "incomplete": False, "snapshot_id": "", "version": len(lines)}
        return {**state, "entry_digests": digests, "indexed_size": len(in_lines(lines)), **values}

    def files(self, *, state: bool = True, intents: bool = True, raw: bool = False, compression: str = "") -> Files:
        """The rollout's files; `compression` is "", ".gz" or ".zst"."""
        made = {f"tokens.jsonl{compression}": compressed(in_lines(self.lines()), compression)}
        if state:
            made["tokens.state.json"] = canonical(self.state()) + b"\n"
        if intents:
            made["tokens.intents"] = in_lines(call.id.encode() for call in self.calls)
        if raw:
            exchanges = in_lines(json.dumps(call.raw(), separators=(",", ":")).encode() for call in self.calls)
            made[f"capture.jsonl{compression}"] = compressed(exchanges, compression)
        return {f"{self.rollout_id}.{ending}": data for ending, data in made.items()}

    def write(self, directory: Path, **how: Any) -> None:
        """Put the files into a capture directory, which is made where it is not there."""
        write_files(directory, self.files(**how))

    def row(self, scored: Call | None = None, **values: Any) -> Row:
        """The finished row that a harness leaves; its response is the scored call's."""
        row: Row = {"_ng_rollout_id": self.rollout_id, "_ng_task_index": 0, "reward": 1.0}
        if scored is not None:
            response = {"id": scored.response_id, "object": "response", "model": MODEL}
            row["response"] = {**response, "output": scored.output}
        return row | values


def token_digest(ids: Sequence[int]) -> str:
    """Gym's digest of a sequence (capture-files.md 2.3), spelled out once more so that it can disagree."""
    if not ids:
        return hashlib.sha256(b"nemo-gym-tokens").hexdigest()
    return hashlib.sha256(b"nemo-gym-tokens\x01" + struct.pack(f">{len(ids) + 1}Q", len(ids), *ids)).hexdigest()


def canonical(value: object) -> bytes:
    """JSON as Gym writes it: sorted keys, no spaces; integers of any size for faulty writers."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def in_lines(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def compressed(data: bytes, compression: str) -> bytes:
    if compression == ".gz":
        return gzip.compress(data, mtime=0)
    return zstandard.ZstdCompressor().compress(data) if compression == ".zst" else data


def write_files(directory: Path, files: Files) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    path.write_bytes(in_lines(json.dumps(row).encode() for row in rows))
