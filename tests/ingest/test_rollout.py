"""The readings of one rollout made ready to be written: copies merged, contradictions found, calls linked."""

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.ingest.held import Held
from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.rollout import PreparedRollout, Preparing, faults_of, prepare
from ng_capture.ingest.sources.interface import Reading, TokenLine
from ng_capture.records.defects import Defect
from ng_capture.records.token_entry import decode_entry
from ng_capture.records.token_record import encode_record
from tests.support.candidates import Made, conversations, rows_of
from tests.support.forge import Forge, Row, token_digest
from tests.support.ingesting import dialogue
from tests.support.raw_exchanges import exchange_of
from tests.support.runs import healthy

HOW = Preparing(None, False, frozenset())


def raw(rows: Iterable[Row]) -> list[RawExchange]:
    return [exchange_of(json.dumps(row).encode(), line) for line, row in enumerate(rows, 1)]


def tokens(forge: Forge) -> list[TokenLine]:
    lines = enumerate(forge.lines(), 1)
    return [TokenLine(decode_entry(data, file="r-1.tokens.jsonl", line=line), ()) for line, data in lines]


def prepared(readings: Iterable[Reading], how: Preparing = HOW, held: Held | None = None) -> PreparedRollout:
    return prepare("r-1", readings, held or Held(), how)


def written(rollout: PreparedRollout) -> list[bytes]:
    """The lines of the records."""
    made = []
    for call in rollout.calls:
        if call.record is not None:
            arrays = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
            whole = {name: list(getattr(call.record, name)) for name in arrays}
            made.append(encode_record(msgspec.structs.replace(call.record, **whole)))
    return made


def problems(rollout: PreparedRollout) -> dict[str, tuple[str, ...]]:
    return {call.candidate.call_id: (*call.candidate.problems, *call.candidate.warnings) for call in rollout.calls}


def test_a_record_holds_what_nemo_gym_would_have_stamped() -> None:
    record = prepared(raw(dialogue(2))).calls[1].record
    assert record is not None
    full = [*record.prompt_token_ids, *record.generation_token_ids]
    assert (record.cum_len, record.digest) == (len(full), token_digest(full))
    assert (record.parent_call_id, record.parent_resolution, record.fingerprint_version) == ("c0", "resolved", 2)
    assert record.continuation_fingerprint and record.continuation_context_len == 3


def test_records_of_nemo_gym_stay_as_they_are_byte_for_byte() -> None:
    forge = healthy("r-1")
    assert written(prepared(tokens(forge))) == forge.lines()


def test_a_raw_call_beside_its_record_changes_nothing_of_it() -> None:
    forge = healthy("r-1")
    rows = [call.raw() for call in forge.calls]
    for row, call in zip(rows, forge.calls, strict=True):
        bundle = {"prompt_token_ids": call.prompt, "generation_token_ids": call.generation}
        row["response"]["output"] = [{**call.output[0], **bundle, "generation_log_probs": call.log_probs}]
    both: list[list[Reading]] = [[*tokens(forge), *raw(rows)], [*raw(rows), *tokens(forge)]]
    for readings in both:
        rollout = prepared(readings)
        assert written(rollout) == forge.lines()
        assert problems(rollout) == {"a": (), "b": ()}
        assert len(rollout.raw_lines) == 2


def test_copies_are_one_call_and_noted() -> None:
    rows = dialogue(1)
    rollout = prepared(raw([*rows, *rows]))
    assert problems(rollout) == {"c0": ("duplicate_record",)}
    assert len(written(rollout)) == len(rollout.raw_lines) == 1


def test_of_two_copies_the_one_with_less_wrong_stands() -> None:
    rows = [*dialogue(1), *dialogue(1)]
    rows[0]["response"]["choices"][0]["finish_reason"] = "abort"
    assert problems(prepared(raw(rows))) == {"c0": ("duplicate_record",)}


@pytest.mark.parametrize("copies", [2, 3])
def test_contradicting_copies_make_no_record(copies: int) -> None:
    rows = [dialogue(1)[0] for _ in range(copies)]
    rows[-1]["response"]["choices"][0]["message"]["generation_token_ids"] = [1, 2]
    rollout = prepared(raw(rows))
    assert [call.candidate.problems for call in rollout.calls] == [("conflicting_records",)] * copies
    assert written(rollout) == []
    assert all(call.candidate.missed for call in rollout.calls)


def test_a_copy_without_tokens_contradicts_nothing() -> None:
    rows = [*dialogue(1), {**dialogue(1)[0], "response": None}]
    for each in (rows, rows[::-1]):
        rollout = prepared(raw(each))
        assert (len(rollout.calls), len(written(rollout))) == (1, 1)


def test_raw_lines_of_the_stores_own_file_are_not_written_again() -> None:
    how = Preparing(None, False, frozenset({"x.capture.jsonl"}))
    rollout = prepared(raw(dialogue(2)), how)
    assert (len(rollout.calls), list(rollout.raw_lines)) == (2, [])


def test_a_call_without_an_id_is_named_by_what_it_holds_whatever_its_file() -> None:
    rows = [{key: value for key, value in row.items() if key != "model_call_id"} for row in dialogue(2)]
    readings = [msgspec.structs.replace(reading, call_id=None) for reading in raw(rows)]
    names = [call.candidate.call_id for call in prepared(readings).calls]
    moved = [msgspec.structs.replace(reading, file="b", line=reading.line + 7) for reading in readings]
    assert [call.candidate.call_id for call in prepared(moved).calls] == names
    assert len(set(names)) == 2 and all(name.startswith("raw-") for name in names)
    assert [json.loads(line.data)["model_call_id"] for line in prepared(readings).raw_lines] == names


def test_what_the_operator_says_of_log_probabilities_stands_in_the_record() -> None:
    rollout = prepared(raw(dialogue(1)), Preparing("processed", False, frozenset()))
    assert json.loads(written(rollout)[0])["ng_capture"]["log_probs_kind"] == "processed"


def test_faults_have_the_place_of_their_call() -> None:
    row = dialogue(1)[0]
    del row["response"]["choices"][0]["message"]["generation_log_probs"]
    assert list(faults_of(prepared(raw([row])).calls)) == [
        Defect(reason="partial_tokens", file="x.capture.jsonl", line=1, call="c0", detail="generation_log_probs")
    ]


def test_choices_are_a_fault_of_the_raw_call() -> None:
    row = dialogue(1)[0]
    choice = row["response"]["choices"][0]
    row["response"]["choices"] = [choice, {**choice, "index": 1}]
    told = list(faults_of(prepared(raw([row])).calls))
    assert {(fault.reason, fault.call, fault.choices) for fault in told} == {("ambiguous_choices", "c0", 2)}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"generation_log_probs": [-0.5, -0.5]}, "logprob_length_mismatch"),
        ({"generation_log_probs": [None]}, "logprob_missing"),
        ({"generation_token_ids": ["x"]}, "bad_token_id"),
        ({"id": "two\nlines"}, "invalid_record"),
    ],
)
def test_a_record_that_would_not_be_read_back_is_left_out_and_missed(change: Row, problem: str) -> None:
    forge = Forge("r-1")
    forge.root([1], [2], **{"id": "a", **change})
    (call,) = prepared(tokens(forge)).calls
    assert (call.record, call.candidate.problems, call.candidate.missed) == (None, (problem,), True)


def test_a_record_that_contradicts_itself_is_written_as_it_is() -> None:
    """What is wrong with it is for verify to say."""
    forge = Forge("r-1")
    forge.root([1], [2], id="a", digest="0" * 64)
    assert written(prepared(tokens(forge))) == forge.lines()


# Whatever was made


def in_parts(readings: Sequence[Any], chance: random.Random) -> list[Any]:
    shuffled = list(readings)
    chance.shuffle(shuffled)
    return [
        msgspec.structs.replace(each, file=f"part-{chance.randrange(3)}", line=line)
        for line, each in enumerate(shuffled, 1)
    ]


@settings(deadline=None)
@given(
    st.one_of(conversations(), conversations(alike=True), conversations(broken=True)),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_the_order_of_lines_and_files_changes_no_byte(
    calls: list[Made], words: bool, delta: bool, chance: random.Random
) -> None:
    how = msgspec.structs.replace(HOW, delta=delta)
    readings = raw(rows_of(calls, words=words))
    one, other = prepared(readings, how), prepared(in_parts(readings, chance), how)
    assert written(one) == written(other) and one.raw_lines == other.raw_lines


@settings(deadline=None)
@given(conversations(), st.booleans())
def test_deltas_put_together_are_the_prompts_that_were_served(calls: list[Made], words: bool) -> None:
    rollout = prepared(raw(rows_of(calls, words=words)), msgspec.structs.replace(HOW, delta=True))
    whole: dict[str, list[int]] = {}
    for line in written(rollout):
        record = json.loads(line)
        before = whole[record["parent_call_id"]] if record["prompt_is_delta"] else []
        prompt = [*before, *record["prompt_token_ids"]]
        whole[record["model_call_id"]] = [*prompt, *record["generation_token_ids"]]
        assert record["prompt_is_delta"] == (record["parent_call_id"] is not None)
    assert whole == {call.name: call.full for call in calls}
