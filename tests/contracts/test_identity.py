"""Ids are made of what they name: the same for the same, another for anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.contracts.identity import content_digest, made_id

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_the_order_of_keys_changes_no_digest(value: dict[str, object]) -> None:
    assert content_digest(dict(reversed(value.items()))) == content_digest(value)


@pytest.mark.parametrize("other", [["a", 1], ["a", "1", None], ["a1"], ["1", "a"], []])
def test_another_thing_has_another_id(other: list[object]) -> None:
    assert made_id("x_", "a", "1") != made_id("x_", *other)


def test_an_id_is_its_prefix_and_24_digits() -> None:
    name = made_id("call_", "a", {"b": (1, 10**30, "\ud800")})
    assert name.startswith("call_") and len(name) == len("call_") + 24
    assert name == made_id("call_", "a", {"b": [1, 10**30, "\ud800"]})
