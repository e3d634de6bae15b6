"""The cause that the decoded text around a divergence shows: what was held there, what stands there now."""

import re
import unicodedata
from array import array
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

from ng_capture.outputs.explain.edge import Edge
from ng_capture.outputs.explain.json_forms import json_around, json_cause
from ng_capture.records.raw_call import LENGTH_STOPS

_BLOCK = 24
_TRACE = 16
_TOOL_KEYS = frozenset({"function", "parameters", "input_schema"})

_THINK_OPEN = re.compile(r"<think(?:ing)?>|<seed:think>|\[THINK\]|<\|channel\|>analysis<\|message\|>")
_THINK_CLOSE = re.compile(r"</think(?:ing)?>|</seed:think>|\[/THINK\]|<\|end\|>")
_TOOL_CALL = re.compile(
    r"<tool_call>|<function|<\|tool_call|\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_calls_section_begin\|>"
)


def in_answer(edge: Edge) -> str | None:
    """The cause of a difference inside the last answer."""
    tests = (_stop, _spelled, thought_lost, _unicode, _pieces, _other_bytes, _json, _white_space)
    return next((cause for test in tests if (cause := test(edge)) is not None), None)


def at_boundary(edge: Edge) -> str | None:
    """The cause of a difference at the end of the parent's prompt that reaches into its generation."""
    same = _same_text(edge)
    if same is None or edge.at + len(same.held) <= edge.prompt_len:
        return None
    before = edge.text(edge.held[edge.at : edge.prompt_len])
    return "leading_newline_merges_with_prompt" if before.isspace() else "generation_continued_across_cut"


def in_tools(edge: Edge) -> bool:
    """True where the prompt says otherwise which tools there are: a JSON object that describes one."""
    start = max(0, edge.at - 4 * _BLOCK)
    held, new = (edge.text(ids[start : edge.at + 40 * _BLOCK]) for ids in (edge.held, edge.new))
    place = _first_difference(held, new)
    around = [json_around(text, place) for text in (held, new)]
    return any(each is not None and _TOOL_KEYS & set(_keys(each.value)) for each in around)


def _keys(value: Any) -> Iterator[str]:
    """The keys of an object, or of the objects of a list."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield from each


def _stop(edge: Edge) -> str | None:
    """Everything was sent back but the end of the generation."""
    assert edge.tokenizer is not None
    control, rest = edge.tokenizer.control, edge.held_rest
    generated = edge.held[edge.prompt_len : edge.at]
    # the answer went on after a stop token, and the history ends the turn there
    if not (edge.stops & control).isdisjoint(generated):
        return "tokens_after_stop"
    ended = bool(generated) and generated[-1] in control
    if ended and len(rest) <= _TRACE and not edge.text(rest).strip().strip("\ufffd"):
        return "tokens_after_stop"
    if len(rest) == 1 and rest[0] in control and not edge.divergence.new_ends and edge.new[edge.at] in control:
        return "other_stop_token"
    return "stop_token_missing" if _without_its_stop(edge) else None


def _without_its_stop(edge: Edge) -> bool:
    """True if the turn ends with the same text, but with another kind of token than the one that was generated."""
    assert edge.tokenizer is not None
    control, rest = edge.tokenizer.control, edge.held_rest
    if not 1 <= len(rest) <= 3 or rest[-1] not in control or not control.isdisjoint(rest[:-1]):
        return False
    turn = array("Q", takewhile(lambda each: each not in control, edge.new_rest))
    said, says = edge.text(rest[:-1]), edge.text(turn)
    following = edge.new_rest[len(turn) : len(turn) + 1]
    same = says.startswith(said) and not says.removeprefix(said).strip()
    return same and bool(following) and following[0] != rest[-1] and following[0] not in edge.stops


def thought_lost(edge: Edge) -> str | None:
    """A block of reasoning that is not there any more: told by its tags, whatever it says."""
    context = edge.text(edge.held[edge.answer_start : edge.at])
    held, new = edge.text(edge.held[edge.at :]), edge.text(edge.new_rest)
    opened = _next(_THINK_OPEN, held)
    if opened is None:
        opens = list(_THINK_OPEN.finditer(context))
        closes = list(_THINK_CLOSE.finditer(context))
        inside = bool(opens) and (not closes or closes[-1].start() < opens[-1].start())
        # the block is still opened, and closed at once
        if not inside or not _next(_THINK_CLOSE, new):
            return None
    elif _next(_THINK_OPEN, new):
        return None
    close = _THINK_CLOSE.search(held)
    if close is None:
        return "truncated_in_reasoning"
    thought = held[opened.end() if opened else 0 : close.start()]
    if not thought.strip():
        return "empty_think_block_dropped"
    return "reasoning_stripped_by_template"


class _Pieces(NamedTuple):
    """The ids on both sides that spell the same bytes."""

    held: "array[int]"
    new: "array[int]"


def _same_text(edge: Edge) -> _Pieces | None:
    """The first ids after the difference that spell the same bytes on both sides, None where the bytes differ, too."""
    assert edge.tokenizer is not None
    held, new = edge.held_rest, edge.new_rest
    one = other = b""
    taken = taken_new = 0
    while True:
        if len(one) <= len(other):
            if taken == len(held):
                return None
            one += edge.tokenizer.piece(held[taken])
            taken += 1
        else:
            if taken_new == len(new):
                return None
            other += edge.tokenizer.piece(new[taken_new])
            taken_new += 1
        if not (one.startswith(other) or other.startswith(one)):
            return None
        if one and len(one) == len(other):
            return _Pieces(held[:taken], new[:taken_new])


def _spelled(edge: Edge) -> str | None:
    """A special token that came back as plain text."""
    assert edge.tokenizer is not None
    same, added = _same_text(edge), edge.tokenizer.added
    if same is None or added.isdisjoint(same.new) or not added.isdisjoint(same.held):
        return None
    return "special_token_spelled_as_text"


def _pieces(edge: Edge) -> str | None:
    """The same bytes in other pieces: in which?"""
    assert edge.tokenizer is not None
    tokenizer, same = edge.tokenizer, _same_text(edge)
    if same is None:
        return None
    if not all(_is_utf8(tokenizer.piece(each)) for each in same.held):
        return "noncanonical_bytes"
    text = tokenizer.text(same.held)
    return "noncanonical_whitespace" if re.search(r"\s{2,}|[\n\t]", text) else "noncanonical_merge"


def _unicode(edge: Edge) -> str | None:
    """The same characters in another Unicode form."""
    held = edge.text(_without_stop(edge, edge.held_run))
    later = edge.text(edge.new_rest)
    for form in ("NFC", "NFKC", "NFD", "NFKD"):
        composed = unicodedata.normalize(form, held)
        if composed != held and later.startswith(composed):
            return "unicode_normalised"
    return None


def _other_bytes(edge: Edge) -> str | None:
    """Other bytes for what was the same text to whoever looked at it."""
    assert edge.tokenizer is not None
    held = edge.text(_without_stop(edge, edge.held_run))
    later = edge.text(edge.new_rest)
    if "\ufffd" in held and later.startswith(held):
        cut = edge.divergence.held_meets is None and edge.finish_reason in LENGTH_STOPS
        return "truncated_mid_character" if cut else "invalid_utf8_replaced"
    if edge.at == edge.prompt_len and edge.tokenizer.prefix_space and later.startswith(f" {held}"):
        return "missing_prefix_space"
    return _skipped(edge, later)


def _skipped(edge: Edge, later: str) -> str | None:
    """The same text without the control tokens that were generated in it."""
    assert edge.tokenizer is not None
    control = edge.tokenizer.control
    inner = _without_stop(edge, edge.held_rest)
    if not any(each in control for each in inner):
        return None
    plain = edge.text(array("Q", [each for each in inner if each not in control]))
    return "special_token_skipped_in_text" if later.startswith(plain) else None


def _json(edge: Edge) -> str | None:
    """A tool call that was parsed and written anew."""
    start = edge.answer_start
    held, new = edge.text(edge.held[start:]), edge.text(edge.new[start : start + 2 * len(edge.held) + 64])
    place = _first_difference(held, new)
    answer = edge.parent.answer if edge.parent is not None else None
    # an answer that is JSON by itself was edited, where its call says that it called no tool
    if answer is not None and not answer.tool_calls and not _TOOL_CALL.search(held[: place + _TRACE]):
        return None
    before, after = json_around(held, place), json_around(new, place)
    if before is not None and after is None:
        # the new text may end its value where the held one goes on
        after = json_around(new, max(0, place - 1))
    return json_cause(before, after) if before is not None and after is not None else None


def _white_space(edge: Edge) -> str | None:
    """White space that was trimmed or added: before a tool call, at the end of the answer, elsewhere."""
    start = edge.answer_start
    held, new = edge.text(edge.held[start:]), edge.text(edge.new[start : start + 2 * len(edge.held) + 64])
    place = _first_difference(held, new)
    # back to where the white space begins in which the two differ
    while place and held[place - 1].isspace():
        place -= 1
    one, other = held[place:], new[place:]
    rest, rest_new = one.lstrip(), other.lstrip()
    if not _squeezed(rest_new).startswith(_squeezed(rest)[:12]):
        return None
    if _TOOL_CALL.match(rest):
        return "tool_separator_newline_added"
    assert edge.tokenizer is not None
    stops = [edge.tokenizer.piece(each).decode("utf-8", "replace") for each in edge.held[-1:]]
    if not rest or any(rest == stop for stop in stops):
        return "trailing_space_stripped"
    return "white_space_changed"


def _squeezed(text: str) -> str:
    return "".join(text[:400].split())


def _next(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The pattern as the next thing that the text says."""
    return pattern.match(text, len(text) - len(text.lstrip()))


def moved(edge: Edge) -> str | None:
    """A block that is missing here and stands further on."""
    meets = edge.divergence.new_meets
    block = edge.held_run[:_BLOCK]
    if meets is None or len(block) < _BLOCK:
        return None
    return "tools_block_moves" if block.tobytes() in edge.new[meets:].tobytes() else None


def _first_difference(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def _without_stop(edge: Edge, ids: "array[int]") -> "array[int]":
    assert edge.tokenizer is not None
    return ids[:-1] if len(ids) and ids[-1] in edge.tokenizer.control else ids


def _is_utf8(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True
