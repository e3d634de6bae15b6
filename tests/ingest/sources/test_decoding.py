"""Raw JSON is read without changing it: numbers stay what they are, and what parsers differ on is noticed."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.ingest.sources.decoding import decode_events, decode_raw
from tests.support.logs import STREAM

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["token_ids", "a", "message"]), inner),
    max_leaves=8,
)


def value(text: str) -> Any:
    return decode_raw(text.encode()).value


def repeated(text: str) -> str | None:
    return decode_raw(text.encode()).noticed.duplicate_key


@given(JSON)
def test_what_was_written_is_read_exactly_and_nothing_is_noticed(told: object) -> None:
    read = decode_raw(json.dumps(told).encode())
    assert read.value == told
    assert json.dumps(read.value) == json.dumps(told)
    assert read.noticed.duplicate_key is None


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, -(2**64), 10**40])
@pytest.mark.parametrize("text", ["[%d]", '{"a":%d}', '{"a": [0.5,\n%d ]}', "%d"])
def test_an_integer_of_any_size_stays_an_integer(number: int, text: str) -> None:
    assert str(number) in repr(value(text % number))


def test_digits_of_a_fraction_are_no_big_integer() -> None:
    assert value("[-0.00012345678901234567, 1.12345678901234567890]") == [-0.00012345678901234567, 1.1234567890123457]


def test_nan_and_infinity_become_floats() -> None:
    read = value('{"a":[NaN,-Infinity,Infinity,1E400]}')["a"]
    assert math.isnan(read[0])
    assert read[1:] == [-math.inf, math.inf, math.inf]


@pytest.mark.parametrize(
    "text",
    [
        '{"token_ids":[5],"token_ids":[6]}',
        '{"token_ids":[5], "x": {"token_ids":[1]}, "token_ids":[6]}',
        '{"a":[{"b":[{"token_ids" : [5],"token_ids":[5]}]}]}',
        '{"token_ids":[5],"token\\u005fids":[6]}',
        '{"token_ids":NaN,"token_ids":[6]}',
    ],
)
def test_a_token_field_that_an_object_has_twice_is_noticed(text: str) -> None:
    assert repeated(text) == "token_ids"


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '[{"token_ids":[5]},{"token_ids":[6]}]',
        '{"token_ids":[5],"b":{"token_ids":[6]}}',
        '{"fields":["token_ids","token_ids"]}',
        '{"text":"\\"token_ids\\":1,\\"token_ids\\":2"}',
        '{"token_ids":[1,{"token_ids":2}]}',
    ],
)
def test_other_fields_and_other_objects_may_repeat_a_name(text: str) -> None:
    assert repeated(text) is None


@pytest.mark.parametrize("text", ['{"a":"\\ud800"}', '{"\\uDFFF":1}', '["\\ud83d", "\\ud83d\\ude00"]'])
def test_half_a_surrogate_pair_is_noticed(text: str) -> None:
    assert decode_raw(text.encode()).noticed.lone_surrogate


def test_a_whole_surrogate_pair_is_a_character() -> None:
    read = decode_raw(b'["\\ud83d\\ude00", NaN]')
    assert not read.noticed.lone_surrogate


@pytest.mark.parametrize("data", [b"", b"{", b"{} {}", b'{"a":"\xff"}', b"\xef\xbb\xbf{}", b"[" * 100_000, b"1" * 5000])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_raw(data)


def test_events_of_a_stream_keep_their_numbers_and_tell_of_repeated_fields() -> None:
    assert decode_events(STREAM).noticed.duplicate_key is None
    read = decode_events('data: {"token_ids":[18446744073709551616],"token_ids":[NaN]}\n\ndata: {"t":"\\ud800"}\n\n')
    assert read.noticed.duplicate_key == "token_ids"
    assert read.noticed.lone_surrogate
    assert decode_events('data: {"token_ids":[18446744073709551616]}\n\n').events == [{"token_ids": [2**64]}]
    assert not decode_events("no stream").events
