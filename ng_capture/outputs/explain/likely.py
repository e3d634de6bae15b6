"""The likely cause of a broken edge: first what the messages show, then the text, then the ids alone."""

from typing import Literal

import msgspec

from ng_capture.outputs.explain.edge import Edge
from ng_capture.outputs.explain.ids_only import by_ids
from ng_capture.outputs.explain.message_changes import message_change
from ng_capture.outputs.explain.text_runs import at_boundary, in_answer, in_prompt, in_tools, moved


class Likely(msgspec.Struct, frozen=True):
    """A cause by its name. `confidence`: the evidence speaks for it, or leaves it open."""

    cause: str
    confidence: Literal["likely", "open"]


_BY_HARNESS = {
    "trailing_space_stripped": "content_stripped_by_harness",
    "reasoning_stripped_by_template": "reasoning_dropped_by_harness",
}
"""What the text alone cannot tell apart: the second, where the messages show it."""


def likely_cause(edge: Edge) -> Likely:
    """The cause at the first difference: what the text does not say the messages decide, else the place."""
    change = message_change(edge.parent, edge.child) if edge.parent is not None and edge.child is not None else None
    in_generation = edge.divergence.region == "generation"
    if edge.tokenizer is None:
        found = change or moved(edge) or by_ids(edge)
        return Likely(found or by_place(edge), "likely" if change is not None else "open")
    shown = in_answer(edge) if in_generation else at_boundary(edge) or change or in_prompt(edge)
    found = change if change is not None and _BY_HARNESS.get(shown or "") == change else shown or change
    return Likely(found or by_place(edge), "likely" if found else "open")


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
        return "tool_json_compact" if answer.tool_calls else "noncanonical_merge"
    if edge.at == 0:
        return "another_conversation"
    if found.new_len < edge.prompt_len:
        return "history_compacted"
    if edge.at < edge.first_prompt_len:
        return "tools_changed" if edge.tokenizer is not None and in_tools(edge) else "system_prompt_changed"
    return "old_tool_result_shortened" if found.new_run < found.held_run else "earlier_turn_edited"
