"""What a harness did to the conversation between two calls, by their messages alone."""

import unicodedata
from itertools import zip_longest

from ng_capture.ingest.exchange import Exchange
from ng_capture.ingest.messages import ASSISTANT, Message, ToolCall
from ng_capture.outputs.explain.json_forms import Spelled, json_around, json_cause
from ng_capture.records.raw_call import LENGTH_STOPS


def message_change(parent: Exchange, child: Exchange) -> str | None:
    """The cause that the messages show, None where the child sends back what it was given."""
    earlier = _instructions_change(parent, child) or history_change(parent, child) or offer_change(parent, child)
    if earlier is not None:
        return earlier
    if parent.answer is None:
        return None
    # an answer that reached its length limit before it said anything
    cut = parent.finish_reason in LENGTH_STOPS and not (parent.answer.text.strip() or parent.answer.tool_calls)
    copy = child.asked[len(parent.asked)]
    if copy.role != ASSISTANT:
        return "truncated_in_reasoning" if cut else "earlier_turn_edited"
    change = answer_change(parent.answer, copy)
    return "truncated_in_reasoning" if cut and change == "reasoning_dropped_by_harness" else change


def _instructions_change(parent: Exchange, child: Exchange) -> str | None:
    """A change at the very beginning, which no other can hide."""
    return "system_prompt_changed" if _system(parent)[:1] != _system(child)[:1] else None


def history_change(parent: Exchange, child: Exchange) -> str | None:
    """What the messages show of everything before the last answer."""
    for place, (before, after) in enumerate(zip(parent.asked, child.asked, strict=False)):
        if before.role == after.role == "system":
            # what the model was told belongs to the offer
            continue
        if _without_ids(before) != _without_ids(after):
            return _changed_turn(parent, child, place)
    if len(child.asked) <= len(parent.asked):
        return "rollback"
    return None


def offer_change(parent: Exchange, child: Exchange) -> str | None:
    """What stands before the conversation: instructions and tools; more of them may be added later on."""
    if _system(parent) != _system(child)[: len(_system(parent))]:
        return "system_prompt_changed"
    return "tools_changed" if parent.tools != child.tools else None


def _without_ids(turn: Message) -> Message:
    """Ids of tool calls may be made anew for every request."""
    calls = tuple(ToolCall("", call.name, call.arguments) for call in turn.tool_calls)
    return Message(turn.role, turn.text, turn.reasoning, calls)


def answer_change(answer: Message, copy: Message) -> str | None:
    """What became of an answer when it was sent back."""
    if answer.reasoning.strip() and not copy.reasoning.strip():
        return "reasoning_dropped_by_harness"
    if copy.reasoning.strip() and answer.reasoning.strip() != copy.reasoning.strip():
        return "assistant_text_edited"
    if answer.text != copy.text:
        if answer.text.strip() == copy.text.strip():
            return "content_stripped_by_harness" if copy.text in answer.text else "white_space_changed"
        if "".join(answer.text.split()) == "".join(copy.text.split()):
            return "white_space_changed"
        same = unicodedata.normalize("NFKC", answer.text) == unicodedata.normalize("NFKC", copy.text)
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
    later = parent.conversation[place + 1 :]
    if len(child.asked) < len(parent.conversation) or (after in later and before.role != after.role):
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
