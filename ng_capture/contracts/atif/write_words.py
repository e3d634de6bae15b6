"""What a turn says and thinks, as a step has it (contracts.md 3.4, 1, 3 and 12)."""

import json
from collections.abc import Mapping

import msgspec

from ng_capture.contracts.atif.content import write_content
from ng_capture.contracts.atif.draft import Draft
from ng_capture.contracts.atif.notes import reasoning_notes
from ng_capture.contracts.atif.read_step import is_silent
from ng_capture.contracts.episode import Opaque, Role, Thought, Turn

COMPACTION = "compaction"


class Noted(msgspec.Struct, frozen=True):
    """Members of a step, and members of its notes."""

    members: Mapping[str, object]
    notes: Mapping[str, object] = {}


def item_of(turn: Turn) -> Opaque | None:
    """The item of another kind that a turn is, if it is one; a turn with a message item is that message."""
    content = turn.content
    alone = isinstance(content, tuple) and len(content) == 1 and not turn.results and turn.item is None
    part = content[0] if alone and content else None
    return part if isinstance(part, Opaque) and turn.role in (Role.SYSTEM, Role.EVENT) else None


def write_message(turn: Turn, draft: Draft, path: str) -> Noted:
    """The message of a turn: a text or parts; of an item of another kind its JSON, of a compaction nothing."""
    item = item_of(turn)
    if item is not None and item.kind == COMPACTION:
        return Noted({"message": ""}, {"item_kind": item.kind, "message_item": item.value})
    if item is not None:
        draft.lose("item_type_opaque", path, item.kind)
        return Noted({"message": json.dumps(item.value, ensure_ascii=False)}, {"item_kind": item.kind})
    if turn.content is None or turn.content == "":
        there = turn.content is not None
        return Noted({"message": ""}, {} if there != is_silent(turn) else {"empty_message": there})
    message, parts = write_content(turn.content, draft, path)
    return Noted({"message": message}, {"parts": parts})


def write_reasoning(turn: Turn, draft: Draft, path: str) -> Noted:
    """The reasoning of a turn as one text, and its pieces in notes."""
    thoughts = turn.thoughts
    texts = [text for thought in thoughts for text in thought.texts]
    if len(texts) > 1:
        draft.lose("reasoning_segments_joined", path)
    for thought in thoughts:
        _tell(thought, draft, path)
    items = [None if each.item is None else dict(each.item) for each in thoughts]
    notes = {"reasoning": reasoning_notes(thoughts)}
    members = {"reasoning_content": "\n".join(texts)} if texts else {}
    return Noted(members, {**notes, "reasoning_items": tuple(items)} if any(items) else notes)


def _tell(thought: Thought, draft: Draft, path: str) -> None:
    if thought.summary and thought.content:
        draft.lose("reasoning_summary_dropped", path)
    if thought.encrypted is not None or thought.signature is not None or thought.redacted:
        draft.lose("reasoning_encrypted_opaque", path)
