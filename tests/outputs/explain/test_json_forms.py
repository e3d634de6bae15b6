"""Two spellings of one tool call: the same value, and in what the spelling differs first."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ng_capture.outputs.explain.json_forms import Spelled, json_around, json_cause


def spelled(text: str) -> Spelled:
    found = json_around(text, 0)
    assert found is not None and found.text == text
    return found


def cause(held: str, new: str) -> str:
    return json_cause(spelled(held), spelled(new))


@pytest.mark.parametrize(
    ("held", "new", "expected"),
    [
        ('{"a":1}', '{"a": 1}', "tool_json_compact"),
        ('{ "a" : 1 }', '{"a": 1}', "tool_json_compact"),
        ('{\n "a": 1\n}', '{"a": 1}', "tool_json_indented"),
        ('{"a": 1}', '{\n "a": 1\n}', "tool_json_indented"),
        ('{"a": "\u00e9"}', '{"a": "\\u00e9"}', "tool_json_escaped"),
        ('{"a": "x\\/y"}', '{"a": "x/y"}', "tool_json_escaped"),
        ('{"\\u0061": 1}', '{"a": 1}', "tool_json_escaped"),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', "tool_json_key_order"),
        ('{"a": 1.0}', '{"a": 1}', "tool_json_number_form"),
        ('{"a": 1e2}', '{"a": 100.0}', "tool_json_number_form"),
        ('{"a": 1, "a": 2}', '{"a": 2}', "tool_json_duplicate_key"),
        ('{"b": {"a": 1, "a": 2}}', '{"b": {"a": 2}}', "tool_json_duplicate_key"),
        ('{"a": 1}', '{"a": 2}', "tool_call_changed"),
        ('{"a": 1}', "[]", "tool_call_changed"),
        ('{"a": 1}', '{"a": true}', "tool_call_changed"),
        ('{"a": 0}', '{"a": false}', "tool_call_changed"),
        ('[{"name": "f"}]', '[{"name": "f", "id": "k1"}]', "tool_call_id_added"),
        ('{"name": "f"}', '{"name": "f", "id": "k1"}', "tool_call_id_added"),
        ('{"a": {"id": 1}}', '{"a": {"id": 2}}', "tool_call_changed"),
    ],
)
def test_what_differs_first_is_named(held: str, new: str, expected: str) -> None:
    assert cause(held, new) == expected


def test_a_duplicate_key_on_both_sides_is_not_the_difference() -> None:
    assert cause('{"a":1,"a":2}', '{"a": 1, "a": 2}') == "tool_json_compact"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=3), json_values, min_size=1, max_size=3)
COMPACT = (",", ":")


@given(value=objects, before=st.text(" x", max_size=3), after=st.text(" x}]{[", max_size=3))
def test_the_value_around_a_place_is_found_and_where_it_stands(value: Any, before: str, after: str) -> None:
    text = json.dumps(value)
    for place in range(len(before), len(before) + len(text)):
        found = json_around(before + text + after, place)
        assert found is not None and (found.text, found.value) == (text, value)


@given(value=objects)
def test_other_spaces_are_named_whatever_the_value(value: Any) -> None:
    held, new = json.dumps(value, separators=COMPACT), json.dumps(value)
    assume(held != new)
    assert cause(held, new) == cause(new, held) == "tool_json_compact"


@given(value=objects)
def test_lines_are_named_whatever_the_value(value: Any) -> None:
    assert cause(json.dumps(value, indent=1), json.dumps(value)) == "tool_json_indented"


@given(value=objects)
def test_escapes_are_named_whatever_the_value(value: Any) -> None:
    held, new = json.dumps(value, ensure_ascii=False), json.dumps(value)
    assume(held != new)
    assert cause(held, new) == "tool_json_escaped"


@given(value=objects)
def test_the_order_of_keys_is_named_whatever_the_value(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    held, new = json.dumps(value), json.dumps(turned)
    assume(held != new)
    assert cause(held, new) == "tool_json_key_order"


@given(one=objects, other=objects)
def test_another_value_is_never_called_another_spelling(one: dict[str, Any], other: dict[str, Any]) -> None:
    held, new = json.dumps(one), json.dumps(other)
    said = cause(held, new) if held != new else None
    if said is not None and one != other:
        assert said in ("tool_call_changed", "tool_call_id_added")


@pytest.mark.parametrize("text", ["", "x", "{", '{"a"', "[1,", '"{"', "x}", "[" * 1200])
def test_where_no_value_is_whole_there_is_none(text: str) -> None:
    assert json_around(text, len(text) - 1) is None


@pytest.mark.parametrize("levels", [300, 900, 960])
def test_a_value_that_is_nested_too_deeply_to_be_compared_is_none(levels: int) -> None:
    assert json_around('{"a":' * levels + "1" + "}" * levels, 0) is None


def test_a_value_before_or_behind_the_place_is_not_around_it() -> None:
    assert json_around('{"a": 1} x', 9) is None
    assert json_around('x {"a": 1}', 0) is None


def test_of_values_inside_one_another_the_outermost_is_taken() -> None:
    found = json_around('call {"a": [{"b": 1}]}', 15)
    assert found is not None and found.value == {"a": [{"b": 1}]}


def test_a_brace_that_opens_nothing_hides_no_value() -> None:
    found = json_around('if (x) { [1, {"a": 2}]', 15)
    assert found is not None and found.value == [1, {"a": 2}]
