"""Think tags in what a model said (contracts.md 4.6, T-CH-1)."""

import re

import msgspec

from ng_capture.contracts.episode import Thought
from ng_capture.contracts.interface import Thinking

_TAGS = re.compile(r"<think>(.*?)</think>", re.DOTALL)
OFFSETS = "think_tags"
"""The key of `Thought.item` under which stands where in the rest of the text each piece was cut out."""


class Cut(msgspec.Struct, frozen=True):
    """A text without its think tags, and what stood in them, None where there are none."""

    text: str
    thought: Thought | None

    @property
    def offsets(self) -> str:
        """Where the tags stood in what is left, for a report."""
        told = self.thought.item if self.thought is not None else None
        places = told.get(OFFSETS) if told else None
        return f"at {', '.join(map(str, places))}" if isinstance(places, list) else ""


def cut_think_tags(text: str, thinking: Thinking, *, chat: bool) -> Cut:
    """The text with every closed pair of tags cut out, as the model servers of Gym do; what is left is joined.

    AUTO cuts in `chat` alone. A tag that is not closed, or not opened, stays.
    """
    if thinking is Thinking.KEEP or (thinking is Thinking.AUTO and not chat) or "<think>" not in text:
        return Cut(text, None)
    pieces, kept, offsets, end, length = list[str](), list[str](), list[int](), 0, 0
    for found in _TAGS.finditer(text):
        kept.append(text[end : found.start()])
        length += len(kept[-1])
        pieces.append(found[1])
        offsets.append(length)
        end = found.end()
    if not pieces:
        return Cut(text, None)
    return Cut("".join((*kept, text[end:])), Thought(summary=tuple(pieces), item={OFFSETS: offsets}))


def with_think_tags(text: str, thought: Thought) -> str | None:
    """The text as it was before the thought was cut out of it; None where the thought was no tag, or another text's."""
    offsets = thought.item.get(OFFSETS) if thought.item else None
    if not isinstance(offsets, list) or len(offsets) != len(thought.summary) or any(at > len(text) for at in offsets):
        return None
    whole, end = list[str](), 0
    for at, piece in zip(offsets, thought.summary, strict=True):
        whole += (text[end:at], f"<think>{piece}</think>")
        end = at
    return "".join((*whole, text[end:]))
