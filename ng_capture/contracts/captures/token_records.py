"""Token records as tokens of calls: prompts whole, deltas put together, links proven (capture-files.md 2.1 to 2.4)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from ng_capture.contracts.captures.gathering import EntryLine
from ng_capture.contracts.captures.rules import fault_of
from ng_capture.contracts.episode import Json, Tokens
from ng_capture.contracts.rules import Fault
from ng_capture.records.defects import Defect
from ng_capture.records.ids import IdSequence
from ng_capture.records.json_text import object_in
from ng_capture.records.token_entry import TokenEntry

FACTS = "ng_capture_call"
"""The field of a record in a table of calls that holds what its raw exchange told."""
ARRAYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")


class Recorded(msgspec.Struct, frozen=True, eq=False):
    """A call by its token record.

    `tokens` is None where an array is missing or faulty; `fields` are then those of all the line, else those beside the
    arrays. `parent` is the call that it continues: as recorded, else the one with whose whole sequence its prompt
    begins. `prompt` and `full` are None where ids are faulty, or a delta leads to no full record. `facts` are what a
    table of calls tells beside the record.
    """

    entry: TokenEntry
    fields: Json
    tokens: Tokens | None
    parent: str | None
    prompt: IdSequence | None
    full: IdSequence | None
    facts: Json

    @property
    def call_id(self) -> str:
        return self.entry.call_id


class Records(msgspec.Struct, frozen=True, eq=False):
    """The records of a rollout by call id, in the order of their lines, and what was wrong with them."""

    by_call: Mapping[str, Recorded]
    faults: tuple[Fault, ...]


def read_records(lines: Sequence[EntryLine]) -> Records:
    """The records of a rollout's lines."""
    faults = list[Fault]()
    once = dict[str, EntryLine]()
    for line in sorted(lines, key=lambda line: (line.entry.file, line.entry.line)):
        first = once.setdefault(line.entry.call_id, line)
        if first is not line:
            reason = "duplicate_record" if _same(first.entry, line.entry) else "conflicting_records"
            faults.append(fault_of(line.entry.locate(Defect(reason=reason)), "tokens"))
    whole = _whole(once)
    pool = dict[int, int]()
    read = dict[str, Recorded]()
    for call_id, line in whole.items():
        faults += (fault_of(line.entry.locate(defect), "tokens") for defect in _defects(line.entry))
        tokens = _tokens(line.entry, pool)
        fields = dict(line.entry.rest) if tokens is not None else dict(_all_fields(line))
        facts = object_in(fields.pop(FACTS, None))
        read[call_id] = Recorded(line.entry, fields, tokens, None, line.entry.prompt, line.entry.full, facts)
    links = dict(_links(read))
    linked = {key: msgspec.structs.replace(each, parent=links.get(key)) for key, each in read.items()}
    return Records(linked, tuple(faults))


def _same(one: TokenEntry, other: TokenEntry) -> bool:
    return (one.rest, one.generation.text, one.log_probs, _prompt_key(one)) == (
        other.rest,
        other.generation.text,
        other.log_probs,
        _prompt_key(other),
    )


def _prompt_key(entry: TokenEntry) -> object:
    return entry.suffix.text if entry.prompt is None else entry.prompt.digest()


def _whole(lines: Mapping[str, EntryLine]) -> dict[str, EntryLine]:
    """The lines with the sequences of deltas, each behind that of its parent."""
    done = {key: line for key, line in lines.items() if not line.entry.fields.prompt_is_delta}
    for start in lines:
        path = dict[str, None]()
        here: str | None = start
        while here is not None and here in lines and here not in done and here not in path:
            path[here] = None
            here = lines[here].entry.fields.parent_call_id
        for key in reversed(path):
            done[key] = _put_together(lines[key], done.get(lines[key].entry.fields.parent_call_id or ""))
    return {key: done[key] for key in lines}


def _put_together(line: EntryLine, parent: EntryLine | None) -> EntryLine:
    before = None if parent is None else parent.entry.full
    if before is None or any(fault.reason == "bad_token_id" for fault in line.entry.faults):
        return line
    prompt = before.extended(line.entry.suffix)
    entry = msgspec.structs.replace(line.entry, prompt=prompt, full=prompt.extended(line.entry.generation))
    return msgspec.structs.replace(line, entry=entry)


def _defects(entry: TokenEntry) -> Iterator[Defect]:
    yield from entry.faults
    if entry.full is None:
        if entry.fields.prompt_is_delta and not any(fault.reason == "bad_token_id" for fault in entry.faults):
            yield Defect(reason="delta_unresolvable", found=entry.fields.parent_call_id)
        return
    length, digest = entry.fields.cum_len, entry.fields.digest
    if length is not None and length != len(entry.full):
        yield Defect(reason="digest_mismatch", expected=length, found=len(entry.full), detail="the length differs")
    elif digest is not None and digest != entry.full.digest():
        yield Defect(reason="digest_mismatch", detail="the digest differs")


def _tokens(entry: TokenEntry, pool: dict[int, int]) -> Tokens | None:
    """The arrays of a record, None where one of them is faulty; `pool` keeps each id once in memory."""
    if entry.prompt is None or entry.full is None or entry.log_probs is None:
        return None
    full = entry.full.values()
    ids = tuple(map(pool.setdefault, full, full))
    split = len(entry.prompt)
    return Tokens(ids[:split], ids[split:], tuple(entry.log_probs), entry.fields.routed_experts)


def _all_fields(line: EntryLine) -> Json:
    """The line as it stood: of a record whose arrays cannot be used nothing is taken away."""
    if line.whole is not None:
        return line.whole
    entry = line.entry
    log_probs = None if entry.log_probs is None else entry.log_probs.tolist()
    suffix, generation = (_values(ids.text) for ids in (entry.suffix, entry.generation))
    return {**entry.rest, **dict(zip(ARRAYS, (suffix, generation, log_probs), strict=True))}


def _values(text: bytes) -> list[int]:
    return [int(each) for each in text.split(b",") if each]


def _links(read: Mapping[str, Recorded]) -> Iterable[tuple[str, str]]:
    """Calls with the call that they continue: as recorded, else of those that fit the one with the longest sequence."""
    longest = sorted(_sequences(read.values()), key=lambda each: (-len(each[1]), each[0]))
    for key, each in read.items():
        named = each.entry.fields.parent_call_id
        if named is not None and named in read:
            yield key, named
        elif each.prompt is not None and each.entry.fields.parent_resolution != "root":
            fit = (call for call, full in longest if call != key and each.prompt.starts_with(full))
            yield from ((key, call) for call in islice(fit, 1))


def _sequences(read: Iterable[Recorded]) -> Iterator[tuple[str, IdSequence]]:
    """The calls that something can continue: with their whole sequence, if they generated any of it."""
    return ((each.call_id, each.full) for each in read if each.full is not None and each.entry.generated)
