"""What ids and messages say of a divergence where no text can be decoded: the kind of cause rather than the cause."""

import json
import unicodedata

from ng_capture.ingest.messages import ASSISTANT
from ng_capture.outputs.explain.edge import Edge
from ng_capture.records.json_text import is_deep
from ng_capture.records.raw_call import LENGTH_STOPS

_SHORT = 8


def by_ids(edge: Edge) -> str | None:
    """The cause that speaks most, None where nothing does."""
    return _in_prompt(edge) if edge.divergence.region == "prompt" else _in_answer(edge)


def _in_prompt(edge: Edge) -> str | None:
    found = edge.divergence
    end = edge.at + found.held_run
    if found.held_meets is not None and found.held_run <= _SHORT:
        if end > edge.prompt_len:
            asked = edge.parent.asked if edge.parent is not None else ()
            continued = bool(asked) and asked[-1].role == ASSISTANT
            return "generation_continued_across_cut" if continued else "leading_newline_merges_with_prompt"
        if end == edge.prompt_len and not found.new_run:
            return "empty_think_block_dropped"
    thought = edge.parent is not None and any(turn.reasoning for turn in edge.parent.asked)
    return "reasoning_stripped_by_template" if thought and found.held_meets and not found.new_run else None


def _in_answer(edge: Edge) -> str | None:
    found, rest = edge.divergence, edge.held_rest
    if edge.finish_reason in LENGTH_STOPS:
        said = edge.parent is None or edge.parent.answer is None or edge.parent.answer.text.strip()
        return "truncated_mid_character" if said else "truncated_in_reasoning"
    if found.new_ends:
        return None
    if edge.at > edge.prompt_len and edge.held[edge.at - 1] in edge.stops and edge.held[-1] not in edge.stops:
        return "tokens_after_stop"
    if len(rest) == 1:
        return "other_stop_token"
    if len(rest) <= _SHORT and edge.new[edge.at] == edge.held[-1]:
        return "trailing_space_stripped"
    if found.offset == 0 and not found.new_run and found.held_meets is not None:
        return "reasoning_stripped_by_template"
    return _lost_text(edge) or _tool_call(edge) or _retokenised(edge)


def _lost_text(edge: Edge) -> str | None:
    """What the answer's own text shows: bytes that were no text, characters that a tokenizer composes."""
    answer = edge.parent.answer if edge.parent is not None else None
    if answer is None:
        return None
    told = "".join((answer.reasoning, answer.text, *(call.arguments for call in answer.tool_calls)))
    if "\ufffd" in told:
        return "invalid_utf8_replaced"
    return "unicode_normalised" if unicodedata.normalize("NFC", told) != told else None


def _tool_call(edge: Edge) -> str | None:
    """A tool call in the answer, and a difference that its arguments or its separator explain."""
    answer = edge.parent.answer if edge.parent is not None else None
    if answer is None or not answer.tool_calls:
        return None
    if answer.text.endswith("\n") and edge.divergence.held_run == edge.divergence.new_run == 1:
        return "tool_separator_newline_added"
    if _differs_again(edge) or any(_odd(call.arguments) for call in answer.tool_calls):
        return "tool_json_compact"
    return None


def _differs_again(edge: Edge) -> bool:
    """True where the two differ once more after they met: one word in other pieces differs in one place only."""
    found = edge.divergence
    if found.held_meets is None or found.new_meets is None:
        return True
    rest = edge.held[found.held_meets :]
    return edge.new[found.new_meets : found.new_meets + len(rest)] != rest


def _odd(arguments: str) -> bool:
    """True for JSON that a program would spell otherwise."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return True
    if is_deep(value):
        return True
    spellings = {json.dumps(value, ensure_ascii=ascii_only) for ascii_only in (False, True)}
    return arguments not in spellings


def _retokenised(edge: Edge) -> str | None:
    found = edge.divergence
    if found.held_meets is None:
        return None
    if found.offset == 0 and found.held_run == found.new_run == 1:
        return "missing_prefix_space"
    return "noncanonical_merge" if 0 < found.new_run < found.held_run <= 2 * _SHORT else None
