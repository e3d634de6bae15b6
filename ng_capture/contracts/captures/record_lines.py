"""Token records of the calls of an episode: as they stood, or made of its tokens (capture-files.md 2)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import orjson

from ng_capture.contracts.captures.calls import Made
from ng_capture.contracts.captures.rules import fault
from ng_capture.contracts.captures.sequences import Sequences, rest_behind
from ng_capture.contracts.captures.token_records import ARRAYS
from ng_capture.contracts.episode import Json, Tokens
from ng_capture.contracts.identity import made_id
from ng_capture.contracts.items.spelling import Item
from ng_capture.contracts.items.writing import CARRIERS, Writing
from ng_capture.contracts.rules import Fault
from ng_capture.errors import InvalidRecord
from ng_capture.records.json_text import encode_json, object_in
from ng_capture.records.lineage import Parent
from ng_capture.records.token_entry import NOTE
from ng_capture.records.token_record import TokenRecord, encode_record, measured


class RecordLine(msgspec.Struct, frozen=True, eq=False):
    """The line of a call: `data` is its record, None where there is none; `faults` tell why where one was to be."""

    made: Made
    data: bytes | None
    faults: tuple[Fault, ...] = ()


def record_lines(made: Sequence[Made], rollout_id: str) -> list[RecordLine]:
    """The records of some calls.

    One that was read is written as it stood, field by field; what has complete tokens gets a new one. Its parent is the
    call before it in its thread, if its prompt begins with all of that one's ids, else the one with the longest
    sequence that does; calls with the identical sequence are a fault, not a guess (`tokens.link_ambiguous`).
    """
    return list(_Writing(made, rollout_id).lines())


def output_items(made: Made, name: str) -> list[Item]:
    """What a call answered, as items of Responses; ids that items lack are made of the name of the call."""
    turn = made.turn
    if turn.content is None and not turn.thoughts and not turn.calls:
        return []
    alone = msgspec.structs.replace(turn, results=(), call=None)
    return Writing(name, own=False).turn(0, alone, output=True)


def is_recorded(made: Made) -> bool:
    """True for a call that a token record was read of."""
    return made.call.record is not None


class _Writing:
    def __init__(self, made: Sequence[Made], rollout_id: str) -> None:
        self._made, self._rollout_id = made, rollout_id
        self._ids = dict(_call_ids(made, rollout_id))
        self._tokens = {self._ids[at]: tokens for at, each in enumerate(made) if (tokens := _usable(each)) is not None}
        self._of_turn = {id(each.turn): self._ids[at] for at, each in enumerate(made) if self._ids[at] in self._tokens}
        self._sequences = Sequences({name: tokens for name, tokens in self._tokens.items() if tokens.complete})

    def lines(self) -> Iterator[RecordLine]:
        for at, each in enumerate(self._made):
            if each.call.record is not None:
                record = self._as_it_stood(each.call.record, each.call.tokens)
                yield RecordLine(each, _encoded(record | _noted(each, record.get(NOTE))))
            elif (tokens := _usable(each)) is not None:
                yield self._new(at, each, tokens)
            else:
                yield RecordLine(each, None)

    def _as_it_stood(self, record: Json, tokens: Tokens | None) -> dict[str, object]:
        if tokens is None:
            # its arrays stand in it, faults and all
            return dict(record)
        prompt = tokens.prompt_ids or ()
        if record.get("prompt_is_delta"):
            parent = self._tokens.get(str(record.get("parent_call_id")))
            rest = None if parent is None else rest_behind(prompt, parent)
            if rest is not None:
                prompt = rest
            else:
                # its parent is not written: a delta would lead nowhere
                record = {**record, "prompt_is_delta": False}
        return {**record, **dict(zip(ARRAYS, (prompt, tokens.completion_ids, tokens.log_probs), strict=True))}

    def _new(self, at: int, made: Made, tokens: Tokens) -> RecordLine:
        call = made.call
        place = made.turn.place
        parent = self._parent(made, tokens.prompt_ids or ())
        if parent is None:
            message = f"call {self._ids[at]} goes on with calls that have the identical sequence"
            return RecordLine(made, None, (fault("tokens.link_ambiguous", message, place),))
        items = output_items(made, f"{self._rollout_id}/{self._ids[at]}")
        carriers = [number for number, item in enumerate(items) if item["type"] in CARRIERS]
        record = TokenRecord(
            rollout_id=self._rollout_id,
            model_call_id=self._ids[at],
            prompt_token_ids=list(tokens.prompt_ids or ()),
            generation_token_ids=list(tokens.completion_ids or ()),
            generation_log_probs=list(tokens.log_probs or ()),
            model=call.model or made.thread.agent.model or "",
            routed_experts=tokens.routed_experts,
            output_items=items,
            token_item_index=carriers[-1] if carriers else None,
            response_id=call.response_id,
            created_at=call.completed_at or 0.0,
            parent_call_id=parent.parent_call_id,
            parent_resolution=parent.resolution,
            parent_resolution_reason=parent.reason,
            extras=_noted(made, None),
        )
        try:
            return RecordLine(made, encode_record(measured(record)))
        except InvalidRecord as error:
            rule = f"tokens.{error.reason}"
            return RecordLine(made, None, (fault(rule, error.message.partition(": ")[2], place),))

    def _parent(self, made: Made, prompt: Sequence[int]) -> Parent | None:
        """The link of a call by its ids; None where several fit equally well."""
        before = self._of_turn.get(id(made.before)) if made.before is not None else None
        if before is not None and rest_behind(prompt, self._tokens[before]) is not None:
            return Parent("resolved", before)
        fit = self._sequences.beginning(prompt)
        if fit:
            return Parent("resolved", fit[0]) if len(fit) == 1 else None
        return Parent("unresolved", reason="no_match") if made.spoken else Parent("root")


def _noted(made: Made, note: object) -> dict[str, object]:
    """What is wrong with a call and its record does not show, where ingest notes it, too: a verdict rests on it."""
    call, tokens = made.call, made.call.tokens
    problems = list[str]()
    if call.error_category == "stream_truncated":
        problems.append("stream_truncated")
    counted = call.usage.tokens_out
    if counted is not None and tokens is not None and counted != len(tokens.completion_ids or ()):
        problems.append("token_count_mismatch")
    told = object_in(note)
    known = told.get("problems")
    new = [problem for problem in problems if not isinstance(known, list) or problem not in known]
    return {NOTE: {**told, "problems": [*(known if isinstance(known, list) else ()), *new]}} if new else {}


def _call_ids(made: Iterable[Made], rollout_id: str) -> Iterator[tuple[int, str]]:
    """An id for each call: its own, or one that is made where it has none or another call has it."""
    taken = set[str]()
    for at, each in enumerate(made):
        own = each.call.call_id
        chosen = own if own and own not in taken else made_id("", rollout_id, each.thread.trajectory_id, at)
        taken.add(chosen)
        yield at, chosen


def _usable(made: Made) -> Tokens | None:
    """The tokens of a call where all three arrays are there and fit; a record may have generated nothing."""
    tokens = made.call.tokens
    if tokens is None or tokens.prompt_ids is None or tokens.completion_ids is None or tokens.log_probs is None:
        return None
    empty = is_recorded(made) and len(tokens.completion_ids) == len(tokens.log_probs)
    return tokens if tokens.complete or empty else None


def _encoded(record: Mapping[str, object]) -> bytes:
    try:
        return orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return encode_json({key: record[key] for key in sorted(record)})
