"""Give entries their id sequences, each on the strand of the call that it extends, whatever the order of the lines."""

from typing import NamedTuple

import msgspec

from ng_capture.records.defects import Defect
from ng_capture.records.ids import BadTokenId, IdSequence, read_ids
from ng_capture.records.token_entry import NO_PROMPT, PromptText, TokenEntry, Unreadable, bad_prompt_id


class Placed(NamedTuple):
    """All entries with their sequences, and those whose prompt turned out to be no JSON."""

    entries: tuple[TokenEntry, ...]
    damaged: tuple[TokenEntry, ...]


class Placer:
    """Places the entries of one rollout.

    Where an entry is stored decides nothing: it shares memory with its parent, or with the entry before it, only if
    its own text begins with theirs. An entry whose parent has not come yet waits as text.
    """

    def __init__(self) -> None:
        self._by_call: dict[str, IdSequence] = {}
        self._latest = IdSequence.empty()
        self._waiting: list[TokenEntry] = []
        self._placed: list[TokenEntry] = []

    def add(self, entry: TokenEntry) -> None:
        """Take the next entry of the file; raises Unreadable where its prompt is no JSON."""
        parent = entry.fields.parent_call_id
        if entry.fields.prompt_is_delta:
            self._placed.append(_with_suffix(entry))
        elif parent and parent not in self._by_call:
            self._waiting.append(_released(entry))
        else:
            self._place(entry)

    def finish(self) -> Placed:
        """What was taken."""
        damaged = []
        self._waiting.sort(key=lambda entry: entry.stored.end)
        for entry in self._waiting:
            try:
                self._place(entry)
            except Unreadable:
                damaged.append(entry)
        self._waiting = []
        return Placed(tuple(self._placed), tuple(damaged))

    def _place(self, entry: TokenEntry) -> None:
        near = self._by_call.get(entry.fields.parent_call_id or "", self._latest)
        try:
            prompt = _sequence(entry.stored, near)
        except BadTokenId as error:
            self._placed.append(_with_bad_prompt(entry, error))
            return
        except ValueError:
            raise Unreadable(Defect(reason="damaged_line")) from None
        if any(fault.reason == "bad_token_id" for fault in entry.faults):
            self._placed.append(msgspec.structs.replace(entry, stored=NO_PROMPT))
            return
        full = prompt.extended(entry.generation)
        self._by_call.setdefault(entry.call_id, full)
        self._latest = full
        self._placed.append(msgspec.structs.replace(entry, stored=NO_PROMPT, prompt=prompt, full=full))


def _with_suffix(entry: TokenEntry) -> TokenEntry:
    """A delta with the ids that it adds to its parent's sequence."""
    try:
        return msgspec.structs.replace(entry, stored=NO_PROMPT, suffix=read_ids(entry.stored.text))
    except BadTokenId as error:
        return _with_bad_prompt(entry, error)
    except ValueError:
        raise Unreadable(Defect(reason="damaged_line")) from None


def _with_bad_prompt(entry: TokenEntry, error: BadTokenId) -> TokenEntry:
    faults = (*entry.faults, bad_prompt_id(error.position, error.found))
    return msgspec.structs.replace(entry, stored=NO_PROMPT, faults=faults)


def _released(entry: TokenEntry) -> TokenEntry:
    """The entry without the line that its prompt stood in."""
    return msgspec.structs.replace(entry, stored=entry.stored.alone())


def _sequence(stored: PromptText, near: IdSequence) -> IdSequence:
    """The sequence of a stored prompt, on the strand of `near` if it begins with that; raises BadTokenId."""
    end = near.text_end_in(stored.data, stored.start)
    if end is None:
        ids = read_ids(stored.text)
        respelled = ids.text[:-1] + b"]"
        if ids.text == stored.text:
            return IdSequence.of(ids)
        return _sequence(PromptText(respelled, 0, len(respelled) - 1), near)
    try:
        return near.extended(read_ids(stored.from_(end)))
    except BadTokenId as error:
        raise BadTokenId(len(near) + error.position, error.found) from None
