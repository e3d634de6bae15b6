"""Typed values to the line of NeMo Gym 0.7.0 and back (capture-files.md 1.1, 2.1 to 2.5, cases V01 to V14)."""

from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.errors import InvalidRecord
from ng_capture.records.token_record import (
    TokenRecord,
    Unreadable,
    as_delta,
    decode_record,
    encode_record,
    stamped,
)
from tests.support.corpus import corpus_file, corpus_folder
from tests.support.forge import Forge, canonical, token_digest

ASKED = [{"role": "user", "content": "q"}]


def plain(**values: Any) -> TokenRecord:
    told: dict[str, Any] = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}
    return TokenRecord(**({"rollout_id": "r-1", "model_call_id": "a"} | told | values))


def corpus_lines() -> list[bytes]:
    folder = corpus_file(Path(corpus_folder("gym")) / "capture")
    return [line for path in sorted(folder.glob("*.tokens.jsonl")) for line in path.read_bytes().split(b"\n") if line]


# The line


def test_every_line_that_gym_wrote_is_written_again_byte_for_byte() -> None:
    lines, refused = corpus_lines(), 0
    for line in lines:
        try:
            record = decode_record(line)
        except Unreadable:
            refused += 1
        else:
            assert encode_record(record) == line
    # five lines are torn, three have a null among their log probabilities
    assert (refused, len(lines)) == (8, 1460)


def test_a_plain_record_has_every_field_of_the_schema() -> None:
    told = orjson.loads(encode_record(plain()))
    (call,) = [Forge().root([1, 2], [3])]
    assert list(told) == sorted(call.record())
    assert told["schema_version"] == 1


def test_whole_numbers_are_written_as_the_log_probabilities_that_they_are() -> None:
    assert b'"created_at":3.0,' in encode_record(plain(created_at=3))
    assert b'"generation_log_probs":[0.0],' in encode_record(plain(generation_log_probs=[0]))


def test_fields_that_gym_does_not_know_stand_among_the_others() -> None:
    line = encode_record(plain(extras={"weight_version": 7, "aa": "é"}))
    assert line.startswith('{"aa":"é",'.encode()) and line.endswith(b',"weight_version":7}')
    assert decode_record(line).extras == {"weight_version": 7, "aa": "é"}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"generation_log_probs": [float("nan")]}, "logprob_not_finite: of the record at position 0, found nan"),
        ({"generation_log_probs": [float("-inf")]}, "logprob_not_finite"),
        ({"generation_log_probs": []}, "logprob_length_mismatch"),
        ({"generation_log_probs": [None]}, "invalid_record"),
        ({"prompt_token_ids": [1, -1]}, "bad_token_id: prompt at position 1, found -1"),
        ({"prompt_token_ids": [2**31]}, "bad_token_id"),
        ({"prompt_token_ids": [2**70]}, "invalid_record"),
        ({"prompt_token_ids": [True]}, "invalid_record"),
        ({"generation_token_ids": ["3"]}, "invalid_record"),
        ({"generation_token_ids": [2**40]}, "bad_token_id: generation at position 0"),
        ({"token_item_index": 0}, "token_item_index 0 outside 0 output items"),
        ({"parent_resolution": "resolved"}, "no parent is named"),
        ({"parent_resolution": "root", "parent_call_id": "p"}, "but a parent is named"),
        ({"parent_resolution": "unresolved", "parent_call_id": "p"}, "but a parent is named"),
        ({"prompt_is_delta": True}, "a delta prompt needs a resolved parent"),
        ({"parent_resolution": "guessed"}, "Invalid enum value"),
        ({"created_at": float("inf")}, "invalid_record"),
        ({"model": None}, "Expected `str`, got `null`"),
        ({"model": "\ud800"}, "surrogates not allowed"),
        ({"output_items": [{"n": 2**70}]}, "invalid_record"),
        ({"extras": {"digest": "x", "schema_version": 2}}, "extras name fields of the record: digest, schema_version"),
    ],
)
def test_what_would_not_be_read_back_is_refused(values: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidRecord, match=why.replace("`", ".")) as refused:
        encode_record(plain(**values))
    assert str(refused.value).startswith(refused.value.reason)


@pytest.mark.parametrize("value", [0.5, -1e30])
def test_log_probabilities_that_no_trainer_may_use_are_written_as_they_are(value: float) -> None:
    assert decode_record(encode_record(plain(generation_log_probs=[value]))).generation_log_probs == [value]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"half', "damaged_line"),
        (canonical(Forge().root([1], [2]).record()).replace(b"[1]", b"[1,]"), "damaged_line"),
        (canonical(Forge().root([1], [2]).record()).replace(b"[1]", b"[-1]"), "bad_token_id"),
        (canonical(Forge().root([1], [2], schema_version=2).record()), "schema_too_new"),
        (canonical(Forge().root([1], [2], continuation_context_len="2").record()), "invalid_record"),
    ],
)
def test_a_line_that_is_no_record_has_none(line: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        decode_record(line)


# What is stamped


def test_a_stamp_is_that_of_the_reference() -> None:
    forge = Forge()
    call = forge.root([1, 2], [3]).then([4], [5])
    full = decode_record(call.line())
    bare = msgspec.structs.replace(
        full,
        cum_len=None,
        digest=None,
        continuation_fingerprint="",
        continuation_context_len=0,
        continuation_context_digest="",
        fingerprint_version=None,
    )
    assert encode_record(stamped(bare, call.request)) == call.line()


def test_length_and_digest_are_those_that_gym_stamped() -> None:
    """Fingerprints cannot be compared here: the corpus has no requests that belong to its records."""
    differ = []
    for line in corpus_lines():
        try:
            record = decode_record(line)
        except Unreadable:
            continue
        told = stamped(record, ASKED)
        if not record.prompt_is_delta and (told.cum_len, told.digest) != (record.cum_len, record.digest):
            differ.append(record.model_call_id)
    # two rollouts of the corpus had tokens changed after they were stamped
    assert len(differ) == 2


def test_what_has_no_fingerprint_is_found_by_nobody() -> None:
    record = stamped(plain(), [{"role": "assistant", "content": 5}])
    assert (record.continuation_fingerprint, record.fingerprint_version) == ("", None)
    assert (record.cum_len, record.digest) == (3, token_digest([1, 2, 3]))


@pytest.mark.parametrize("ids", [[-1], [2**31], ["1"], [True], [object()]])
def test_ids_that_are_none_are_not_stamped(ids: list[Any]) -> None:
    with pytest.raises(InvalidRecord, match="bad_token_id"):
        stamped(plain(prompt_token_ids=ids), ASKED)


# Deltas


def test_a_delta_is_the_reference_s() -> None:
    forge = Forge(delta=True)
    parent = forge.root([1, 2], [3])
    child = parent.then([4], [5])
    whole = msgspec.structs.replace(decode_record(child.line()), prompt_token_ids=child.prompt, prompt_is_delta=False)
    assert encode_record(as_delta(whole, parent.full)) == child.line()


@pytest.mark.parametrize(("resolution", "parent"), [("root", None), ("unresolved", None), (None, "p")])
def test_only_a_resolved_parent_makes_a_delta(resolution: str | None, parent: str | None) -> None:
    record = plain(parent_resolution=resolution, parent_call_id=parent)
    assert as_delta(record, [1]) is record


@pytest.mark.parametrize("held", [[9], [1, 9], [1, 2, 3]])
def test_a_prompt_that_does_not_extend_its_parent_stays_whole(held: list[int]) -> None:
    record = plain(parent_resolution="resolved", parent_call_id="p")
    assert as_delta(record, held) is record


# Whatever it holds

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)
_IDS = st.lists(st.integers(0, 2**31 - 1), max_size=6)


@st.composite
def some_record(draw: st.DrawFn) -> TokenRecord:
    generation = draw(_IDS)
    items = draw(st.lists(st.dictionaries(_TEXT, _JSON, max_size=3), max_size=3))
    parent = draw(st.none() | _TEXT.filter(bool))
    return TokenRecord(
        rollout_id=draw(_TEXT),
        model_call_id=draw(_TEXT),
        prompt_token_ids=draw(_IDS),
        generation_token_ids=generation,
        generation_log_probs=draw(st.lists(st.floats(-9998, 0), min_size=len(generation), max_size=len(generation))),
        model=draw(_TEXT),
        routed_experts=draw(_JSON),
        output_items=items,
        token_item_index=draw(st.integers(0, len(items) - 1)) if items else None,
        response_id=draw(st.none() | _TEXT),
        created_at=draw(st.floats(0, 1e10)),
        parent_call_id=parent,
        parent_resolution=draw(st.sampled_from(["resolved", None] if parent else ["root", "unresolved", None])),
        extras=draw(st.dictionaries(_TEXT.map(lambda text: f"x_{text}"), _JSON, max_size=2)),
    )


@given(some_record())
def test_a_record_is_read_back_as_it_was_given(record: TokenRecord) -> None:
    line = encode_record(record)
    assert b"\n" not in line
    assert msgspec.structs.asdict(decode_record(line)) == msgspec.structs.asdict(record)


@given(st.dictionaries(st.sampled_from(TokenRecord.__struct_fields__), _JSON | st.binary(max_size=3), max_size=4))
def test_whatever_is_given_is_written_readably_or_refused(values: dict[str, Any]) -> None:
    try:
        line = encode_record(plain(**values))
    except InvalidRecord:
        return
    assert encode_record(decode_record(line)) == line
