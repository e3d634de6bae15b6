"""What a harness did to the conversation between two calls, by their messages alone."""

import unicodedata
from itertools import zip_longest

from ng_capture.ingest.exchange import Exchange
from ng_capture.ingest.messages import ASSISTANT, Message, ToolCall
from ng_capture.outputs.explain.json_forms import Spelled, json_around, json_cause


def message_change(parent: Exchange, child: Exchange) -> str | None:
    """The cause that the messages show, None where the child sends back what it was given."""
    if _system(parent) != _system(child):
        return "system_prompt_changed"
    if parent.tools != child.tools:
        return "tools_changed"
    for place, (before, after) in enumerate(zip(parent.asked, child.asked, strict=False)):
        if before != after:
            return _changed_turn(parent, child, place)
    if len(child.asked) <= len(parent.asked):
        return "rollback"
    copy = child.asked[len(parent.asked)]
    if parent.answer is None:
        return None
    return answer_change(parent.answer, copy) if copy.role == ASSISTANT else "earlier_turn_edited"


def answer_change(answer: Message, copy: Message) -> str | None:
    """What became of an answer when it was sent back."""
    if answer.reasoning.strip() and not copy.reasoning.strip():
        return "reasoning_dropped_by_harness"
    if answer.text != copy.text:
        if answer.text.strip() == copy.text.strip():
            return "content_stripped_by_harness"
        same = unicodedata.normalize("NFC", answer.text) == unicodedata.normalize("NFC", copy.text)
        return "unicode_normalised" if same else "assistant_text_edited"
    for one, other in zip_longest(answer.tool_calls, copy.tool_calls):
        if one is None or other is None or one.name != other.name:
            return "tool_call_changed"
        if one.arguments != other.arguments:
            return _changed_arguments(one, other)
    return None


def _changed_turn(parent: Exchange, child: Exchange, place: int) -> str | None:
    before, after = parent.asked[place], child.asked[place]
    went_on = parent.answer is not None and place == len(parent.asked) - 1 and before.role == after.role == ASSISTANT
    # the call went on with an answer that was cut: the two halves are one message now
    if went_on and parent.answer is not None and after.text == before.text + parent.answer.text:
        return "generation_continued_across_cut"
    if len(child.asked) < len(parent.conversation):
        return "history_compacted"
    if before.role == after.role == "tool":
        return "old_tool_result_shortened"
    if before.role == after.role == ASSISTANT:
        return answer_change(before, after) or "earlier_turn_edited"
    return "earlier_turn_edited"


def _changed_arguments(one: ToolCall, other: ToolCall) -> str:
    before, after = (json_around(call.arguments.strip(), 0) for call in (one, other))
    if isinstance(before, Spelled) and isinstance(after, Spelled):
        return json_cause(before, after)
    return "tool_call_changed"


def _system(exchange: Exchange) -> list[str]:
    return [turn.text for turn in exchange.asked if turn.role == "system"]
