"""Digests of conversations that begin alike are those of each by itself, whatever came before it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.records.fingerprint import (
    Beginnings,
    Unfingerprintable,
    assistant_fingerprint,
    conversation_digest,
)

texts = st.sampled_from(["", "a", "b", "\ud800"])
blocks = st.fixed_dictionaries({"type": st.sampled_from(["text", "image", "tool_use", ""]), "text": texts})
items = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", 5, ""])},
    optional={
        "content": st.none() | texts | st.lists(blocks | texts, max_size=2) | st.just(float("nan")) | st.just(2**70),
        "type": st.sampled_from(["function_call", "function_call_output", "message"]),
        "arguments": st.sampled_from(["{}", "{", '{"a": 1}', {"a": 1}, None]),
        "tool_calls": st.lists(st.just({"id": "k", "function": {"name": "f", "arguments": "{}"}}), max_size=1),
    },
)
conversations = st.lists(items | st.sampled_from(["text", None, 5]), max_size=4)


def alone(conversation: list[Any]) -> tuple[str | None, tuple[str, ...]]:
    try:
        fingerprint: str | None = assistant_fingerprint(conversation)
    except Unfingerprintable:
        fingerprint = None
    begins = []
    for count in range(len(conversation) + 1):
        try:
            begins.append(conversation_digest(conversation[:count]))
        except Unfingerprintable:
            break
    return fingerprint, tuple(begins)


@settings(max_examples=150, deadline=None)
@given(st.lists(conversations, max_size=4))
def test_each_conversation_is_told_as_if_it_were_alone(several: list[list[Any]]) -> None:
    known = Beginnings()
    for conversation in [*several, *(one + other for one in several for other in several)]:
        assert tuple(known.digests(conversation)) == alone(conversation)


def deep(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [10, 300, 5000])
def test_what_is_too_deep_to_be_kept_is_told_as_if_it_were_alone(depth: int) -> None:
    known = Beginnings()
    one, other = {"role": "user", "content": [{"type": "x", "deep": deep(depth)}]}, {"role": "user", "content": "a"}
    for conversation in ([one], [one, other], [other, one], [other], [one, other]):
        assert tuple(known.digests(conversation)) == alone(conversation)
