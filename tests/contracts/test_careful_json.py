"""Whatever is odd about a JSON text is told, with its place; nothing is repaired."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.contracts.careful_json import json_rules, read_carefully

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def told(data: bytes) -> list[tuple[str, str, str]]:
    return [(fault.rule, fault.severity, fault.path) for fault in read_carefully(data, "x").faults]


@given(JSON)
def test_what_is_plain_json_is_read_as_it_stands_and_has_no_fault(value: object) -> None:
    careful = read_carefully(json.dumps(value).encode(), "x")
    assert careful.read and careful.value == value
    assert not [fault for fault in careful.faults if fault.rule != "x.json.surrogate"]


@given(st.binary(max_size=80))
def test_no_bytes_are_a_crash(data: bytes) -> None:
    careful = read_carefully(data, "x")
    assert careful.read or careful.faults


def test_a_key_that_stands_twice_is_named_by_its_place() -> None:
    careful = read_carefully(b'{"a":[{"b":1,"c":2,"b":3}]}', "x")
    assert careful.value == {"a": [{"b": 3, "c": 2}]}
    assert told(b'{"a":[{"b":1,"c":2,"b":3}]}') == [("x.json.duplicate_key", "error", "/a/0/b")]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_named_by_its_place(text: str) -> None:
    careful = read_carefully(b'{"a/b":[0,%b]}' % text.encode(), "x")
    assert not math.isfinite(careful.value["a/b"][1])
    assert [(fault.rule, fault.path) for fault in careful.faults] == [("x.json.non_finite", "/a~1b/1")]


def test_a_number_with_more_digits_than_a_double_holds_is_a_warning() -> None:
    assert told(b"1e-99999999999999999999") == [("x.json.imprecise", "warning", "")]
    assert told(b"[0.1, 1.50, 1e3, 0.12345678901234567891]") == [("x.json.imprecise", "warning", "/3")]


@pytest.mark.parametrize(
    ("data", "path"), [(rb'{"a":"\ud800"}', "/a"), (rb'{"\ud800":1}', "/\\ud800"), (b'{"a":"\\udc00x"}', "/a")]
)
def test_half_of_a_surrogate_pair_is_an_error(data: bytes, path: str) -> None:
    assert told(data) == [("x.json.surrogate", "error", path)]


def test_a_whole_surrogate_pair_is_a_character() -> None:
    careful = read_carefully(rb'"\ud83d\ude00"', "x")
    assert careful.value == "\U0001f600" and not careful.faults


def test_a_byte_order_mark_is_told_and_what_follows_is_read() -> None:
    careful = read_carefully(b"\xef\xbb\xbf[1]", "x")
    assert careful.value == [1]
    assert [(fault.rule, fault.severity) for fault in careful.faults] == [("x.json.bom", "warning")]


@pytest.mark.parametrize("data", [b"", b"  \n", b'{"a":', b"{} {}", b"[1,]", b"\xff", b"[" * 2000 + b"]" * 2000])
def test_what_is_not_one_json_value_is_a_fault_of_syntax(data: bytes) -> None:
    careful = read_carefully(data, "x")
    assert not careful.read and careful.value is None
    assert [(fault.rule, fault.severity) for fault in careful.faults] == [("x.json.syntax", "error")]


def test_what_no_reader_holds_is_told_apart() -> None:
    (deep,) = read_carefully(b"[" * 300 + b"]" * 300, "x").faults
    assert deep.message == "nested more than 254 levels deep"
    (long,) = read_carefully(b"9" * 5000, "x").faults
    assert long.message == "an integer of more than 4,300 digits"


def test_a_fault_of_syntax_is_on_the_line_where_it_stands() -> None:
    (fault,) = read_carefully(b'{\n"a": 1,\n}', "x").faults
    assert fault.line == 3
    (fault,) = read_carefully(b"{", "x", line=7).faults
    assert fault.line == 7


def test_every_rule_that_can_be_told_is_in_the_table() -> None:
    rules = json_rules("x")
    texts = (b"", b"\xef\xbb\xbf1", b'{"a":1,"a":1}', b"NaN", rb'"\ud800"', b"0.12345678901234567891")
    found = [fault for text in texts for fault in read_carefully(text, "x").faults]
    assert {fault.rule for fault in found} == set(rules)
    assert all(rules[fault.rule].severity == fault.severity for fault in found)
