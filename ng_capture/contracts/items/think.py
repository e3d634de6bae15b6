"""Think tags in the words of a model: one leading, closed, outermost tag is a thought (contracts.md 3.4, 3)."""

from ng_capture.contracts.episode import Content, Text, Thought

_BEGIN, _END = "<think>", "</think>"


def opened(content: Content | None) -> tuple[Content | None, Thought | None]:
    """The words without a leading think tag, and the thought that it held; as they are where there is none."""
    if isinstance(content, str):
        rest, thought = _split(content)
        return rest, thought
    if content and isinstance(content[0], Text):
        rest, thought = _split(content[0].text)
        return ((Text(rest), *content[1:]), thought) if thought is not None else (content, None)
    return content, None


def _split(text: str) -> tuple[str, Thought | None]:
    if not text.startswith(_BEGIN):
        return text, None
    depth, at = 1, len(_BEGIN)
    while depth:
        end = text.find(_END, at)
        if end < 0:
            return text, None
        begin = text.find(_BEGIN, at, end)
        depth, at = (depth + 1, begin + len(_BEGIN)) if begin >= 0 else (depth - 1, end + len(_END))
    return text[at:], Thought(content=(text[len(_BEGIN) : at - len(_END)],))
