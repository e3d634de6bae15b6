"""Give entries their id sequences, each on the strand of the call that it extends, whatever the order of the lines."""

import msgspec

from ng_capture.records.ids import BadTokenId, IdSequence, read_ids
from ng_capture.records.token_entry import TokenEntry, bad_prompt_id


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
        """Take the next entry of the file."""
        parent = entry.fields.parent_call_id
        if entry.fields.prompt_is_delta:
            self._placed.append(entry)
        elif parent and parent not in self._by_call:
            self._waiting.append(entry)
        else:
            self._place(entry)

    def finish(self) -> list[TokenEntry]:
        """All entries with their sequences."""
        self._waiting.sort(key=lambda entry: len(entry.prompt_text))
        for entry in self._waiting:
            self._place(entry)
        self._waiting = []
        return self._placed

    def _place(self, entry: TokenEntry) -> None:
        if any(fault.reason == "bad_token_id" for fault in entry.faults):
            self._placed.append(entry)
            return
        near = self._by_call.get(entry.fields.parent_call_id or "", self._latest)
        try:
            prompt = _sequence(entry.prompt_text, near)
        except BadTokenId as error:
            faults = (*entry.faults, bad_prompt_id(error.position, error.found))
            self._placed.append(msgspec.structs.replace(entry, prompt_text=b"", faults=faults))
            return
        full = prompt.extended(entry.generation)
        self._by_call.setdefault(entry.call_id, full)
        self._latest = full
        self._placed.append(msgspec.structs.replace(entry, prompt_text=b"", prompt=prompt, full=full))


def _sequence(text: bytes, near: IdSequence) -> IdSequence:
    """The sequence of a text, on the strand of `near` if it begins with that; raises BadTokenId."""
    length = near.text_length_in(text)
    if length is None:
        ids = read_ids(text)
        return IdSequence.of(ids) if ids.text == text else _sequence(ids.text, near)
    try:
        return near.extended(read_ids(text[length:]))
    except BadTokenId as error:
        raise BadTokenId(len(near) + error.position, error.found) from None
