"""The likely cause of a broken edge: first what the messages show, then the text, then the ids alone."""

from collections.abc import Callable
from typing import Literal

import msgspec

from ng_capture.ingest.exchange import Exchange
from ng_capture.outputs.explain.edge import Edge
from ng_capture.outputs.explain.ids_only import by_ids
from ng_capture.outputs.explain.message_changes import history_change, message_change, offer_change
from ng_capture.outputs.explain.text_runs import at_boundary, in_answer, in_tools, moved, thought_lost


class Likely(msgspec.Struct, frozen=True):
    """A cause by its name. `confidence`: the evidence speaks for it, or leaves it open."""

    cause: str
    confidence: Literal["likely", "open"]


_BY_HARNESS = {
    "trailing_space_stripped": "content_stripped_by_harness",
    "reasoning_stripped_by_template": "reasoning_dropped_by_harness",
}
"""What the text alone cannot tell apart: the second, where the messages show it."""

_IN_PASSING = frozenset(
    {"stop_token_missing", "missing_prefix_space", "white_space_changed", "trailing_space_stripped"}
)
"""What may be nothing but the first trace of an answer that was edited."""

_SPACES = frozenset({"tool_separator_newline_added", "white_space_changed", "trailing_space_stripped"})


def likely_cause(edge: Edge) -> Likely:
    """The cause at the first difference: what the text does not say the messages decide, else the place."""
    change = _by_messages(edge, message_change)
    if edge.tokenizer is None:
        found = change or moved(edge) or by_ids(edge)
        return Likely(found or by_place(edge), "likely" if change is not None else "open")
    if edge.divergence.region == "generation":
        shown = in_answer(edge)
    else:
        if not edge.tokenizer.control.isdisjoint(edge.held[edge.at : edge.prompt_len]):
            # a change of the last answer explains nothing that stands before its generation prompt
            change = _by_messages(edge, history_change)
        shown = _in_prompt(edge)
    found = change if change is not None and _says_more(change, shown) else shown or change
    return Likely(found or _reasoning_by_ids(edge) or by_place(edge), "likely" if found else "open")


def _by_messages(edge: Edge, compare: Callable[[Exchange, Exchange], str | None]) -> str | None:
    return compare(edge.parent, edge.child) if edge.parent is not None and edge.child is not None else None


def _in_prompt(edge: Edge) -> str | None:
    """The cause of a difference in the parent's prompt."""
    offer = _by_messages(edge, offer_change)
    return (
        at_boundary(edge)
        or (offer if edge.at < edge.first_prompt_len else None)
        or _by_messages(edge, history_change)
        or thought_lost(edge)
        or offer
        or moved(edge)
    )


def _says_more(change: str, shown: str | None) -> bool:
    """True where the messages say more than the text."""
    if change == "assistant_text_edited":
        return shown in _IN_PASSING
    if change in ("content_stripped_by_harness", "white_space_changed") and shown in _SPACES:
        return True
    return shown is not None and _BY_HARNESS.get(shown) == change


def _reasoning_by_ids(edge: Edge) -> str | None:
    """Reasoning in tags that nobody knows, told as without a tokenizer."""
    guess = by_ids(edge)
    return guess if guess == "reasoning_stripped_by_template" else None


def by_place(edge: Edge) -> str:
    """What most often is the cause of a difference at this place."""
    found = edge.divergence
    if found.new_ends:
        return "rollback"
    if found.region == "generation":
        answer = edge.parent.answer if edge.parent is not None and edge.child is not None else None
        if answer is None:
            return "assistant_text_edited"
        # the messages came back as they were: what differs was made by parser, template or tokenizer
        rest = edge.held_rest
        if edge.tokenizer is not None and len(rest) == 1 and rest[0] in edge.tokenizer.control:
            return "stop_token_missing"
        return "tool_json_compact" if answer.tool_calls else "noncanonical_merge"
    if edge.at == 0:
        return "another_conversation"
    if found.new_len < edge.prompt_len:
        return "history_compacted"
    if edge.at < edge.first_prompt_len:
        return "tools_changed" if edge.tokenizer is not None and in_tools(edge) else "system_prompt_changed"
    return "old_tool_result_shortened" if found.new_run < found.held_run else "earlier_turn_edited"
