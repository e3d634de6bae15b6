"""The conversation of a trained chain: what its last call asked and answered, with the turns that carry loss."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from ng_capture.files.listing import RolloutFiles
from ng_capture.ingest.messages import ASSISTANT, Message, ToolCall
from ng_capture.outputs.export.cutting import LeftOut, left_out
from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.text.chat_form import in_chat_form
from ng_capture.outputs.export.text.talk import NO_CALL, Talk, read_talks
from ng_capture.records.json_text import decode_exact
from ng_capture.verdicts.judge import Judgement

_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


class ChainText(msgspec.Struct, frozen=True):
    """The turns of a chain; `trained` are the places of those that the policy answered and that carry loss."""

    turns: tuple[Message, ...]
    trained: frozenset[int]
    tools: str | None

    @property
    def weighted(self) -> list[dict[str, object]]:
        """The turns in chat form, weight 0 on those of the assistant that carry no loss."""
        return [in_chat_form(turn, int(place in self.trained)) for place, turn in enumerate(self.turns)]

    @property
    def prompt_length(self) -> int:
        """How many turns stand before the first one of the assistant."""
        return next(place for place, turn in enumerate(self.turns) if turn.role == ASSISTANT)


def chain_texts(judgement: Judgement, files: RolloutFiles | None, rows: Sequence[FlatRow]) -> list[ChainText | LeftOut]:
    """The text of every row, or why there is none; raises SurroundingsError."""
    calls = frozenset(call for row in rows for call in row.head.calls)
    ends = frozenset(row.head.calls[-1] for row in rows)
    talks = read_talks(files, judgement.snapshot, calls, ends) if rows else {}
    return [_chain_text(row, talks) for row in rows]


def _chain_text(row: FlatRow, talks: Mapping[str, Talk]) -> ChainText | LeftOut:
    end = row.head.calls[-1]
    last = talks.get(end, NO_CALL)
    if last.fault is not None or last.answer is None:
        return left_out(row, "messages_missing", f"call {end}: {last.fault}")
    turns = [*last.history, last.answer]
    trained = set[int]()
    for call in _with_loss(row):
        if call == end:
            trained.add(last.asked)
            continue
        talk = talks.get(call, NO_CALL)
        if talk.answer is not None and talk.asked < last.asked and _is(turns[talk.asked], talk.answer):
            # with the thoughts that the tokens hold and that a harness does not send again
            turns[talk.asked] = talk.answer
            trained.add(talk.asked)
    return ChainText(tuple(turns), frozenset(trained), last.tools)


def _with_loss(row: FlatRow) -> list[str]:
    """The calls of a row some of whose generated tokens carry loss."""
    spans = [span for span in row.head.spans if span.kind == "gen"]
    return [span.call_id for span in spans if any(row.loss_mask[span.start : span.end])]


def _is(turn: Message, answer: Message) -> bool:
    """True where a turn of a later request is this answer: the same words and calls, its thoughts or none."""
    return (
        turn.role == ASSISTANT
        and turn.reasoning in ("", answer.reasoning)
        and _words(turn.text) == _words(answer.text)
        and list(map(_called, turn.tool_calls)) == list(map(_called, answer.tool_calls))
    )


def _words(text: str) -> str:
    return _THOUGHT.sub("", text).strip()


def _called(call: ToolCall) -> tuple[str, object]:
    try:
        return call.name, decode_exact(call.arguments.encode())
    except ValueError:
        return call.name, call.arguments
