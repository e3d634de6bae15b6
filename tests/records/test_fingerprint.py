"""Claims about content fingerprints: the vectors of capture-files.md (F01 to F12) and the stamps of real captures."""

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.records.fingerprint import (
    FINGERPRINT_VERSION,
    Unfingerprintable,
    assistant_fingerprint,
    conversation_digest,
    is_model_authored,
    last_run,
    request_items,
    trailing_run,
)
from tests.support.corpus import readable_lines

USER = {"role": "user", "content": "q"}
REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
CALL = {"type": "function_call", "call_id": "k", "name": "f", "arguments": '{"b": 1, "a": 2}'}
RESULT = {"type": "function_call_output", "call_id": "k", "output": "42"}
CHAT_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "k", "type": "function", "function": {"name": "f", "arguments": '{"a":2,"b":1}'}}],
}
MESSAGES_CALL = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "k", "name": "f", "input": {"b": 1, "a": 2}}],
}
TOO_DEEP_FOR_ORJSON = '{"a": ' * 300 + "1" + "}" * 300
TOO_DEEP_FOR_PYTHON = "[" * 100_000 + "]" * 100_000


def says(content: object) -> dict[str, object]:
    return {"role": "assistant", "content": content}


def calls(**fields: object) -> dict[str, object]:
    return CALL | fields


def sha256_of(domain: str, *fields: tuple[int, str]) -> str:
    """The layout of capture-files.md 2.5, spelt out a second time."""
    encoded = domain.encode()
    for tag, value in fields:
        encoded += bytes([tag]) + len(value.encode()).to_bytes(8, "big") + value.encode()
    return hashlib.sha256(encoded).hexdigest()


def context_of(*fields: tuple[int, str]) -> str:
    return sha256_of("nemo-gym-lineage-context", *fields)


def spoken(*fields: tuple[int, str]) -> str:
    return sha256_of("nemo-gym-lineage", *fields)


# What the model wrote


def test_the_version_is_that_of_gym_0_7_0() -> None:
    assert FINGERPRINT_VERSION == 2


def test_one_assistant_text_has_the_fingerprint_of_the_reference() -> None:
    expected = "b80a5946522fe7596e5abfe49534af0cceda452c67e496075a092c20c9ab9d67"
    assert assistant_fingerprint([USER, says("hi")]) == expected


def test_two_assistant_texts_have_the_fingerprint_of_the_reference() -> None:
    expected = "4db7474c34099a63af8e1969e6ff7c649be59b4b46dcfb7d3eddcf6efe1d7a7f"
    assert assistant_fingerprint([USER, says("one"), USER, says([{"type": "output_text", "text": "two"}])]) == expected


@pytest.mark.parametrize("items", [[], [USER], [REASONING, RESULT]])
def test_without_a_model_authored_item_the_fingerprint_is_empty(items: list[object]) -> None:
    assert assistant_fingerprint(items) == ""


def test_an_assistant_turn_without_content_hashes_to_the_bare_domain() -> None:
    expected = "706943bb85be0e6410755902bc9407035765b066ed713ced797de6012aefff3b"
    assert assistant_fingerprint([says(None)]) == expected == spoken()


def test_the_three_call_dialects_hash_alike() -> None:
    expected = spoken((2, "k"), (3, "f"), (4, '{"a":2,"b":1}'))
    assert [assistant_fingerprint([item]) for item in (CALL, CHAT_CALL, MESSAGES_CALL)] == [expected] * 3


def test_all_spellings_of_a_text_hash_alike_and_empty_text_is_skipped() -> None:
    blocks = [{"type": kind, "text": "hi"} for kind in ("input_text", "output_text", "text")]
    spellings: list[object] = ["hi", ["hi"], [{"text": "hi"}], ["", "hi", {"type": "text", "text": ""}]]
    spellings += [[block] for block in blocks]
    assert {assistant_fingerprint([says(content)]) for content in spellings} == {spoken((0, "text"), (1, "hi"))}


def test_turn_boundaries_do_not_enter_the_fingerprint() -> None:
    assert assistant_fingerprint([says("a"), USER, says("b")]) == assistant_fingerprint([says(["a", "b"])])


def test_where_one_text_ends_does_enter_the_fingerprint() -> None:
    assert assistant_fingerprint([says(["ab", "c"])]) != assistant_fingerprint([says(["a", "bc"])])


def test_a_namespace_joins_the_function_name() -> None:
    assert assistant_fingerprint([calls(namespace="ns")]) == assistant_fingerprint([calls(name="ns__f")])


def test_a_call_falls_back_on_the_id_of_its_item() -> None:
    item = {"type": "function_call", "id": "k", "name": "f"}
    assert assistant_fingerprint([item]) == spoken((2, "k"), (3, "f"), (4, ""))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (None, ""),
        ("", ""),
        (" x ", "x"),
        (' {"b": [1, 2.50], "a": "é"} ', '{"a":"é","b":[1,2.5]}'),
        ({"b": 1, "a": None}, '{"a":null,"b":1}'),
        ("[NaN, Infinity, -Infinity]", "[null,null,null]"),
        ('{"a": 1, "a": 2}', '{"a":2}'),
        ("18446744073709551615", "18446744073709551615"),
        ('"a \\u00e9"', '"a é"'),
    ],
)
def test_arguments_are_canonical_json_or_else_stripped_text(arguments: object, expected: str) -> None:
    assert assistant_fingerprint([calls(arguments=arguments)]) == spoken((2, "k"), (3, "f"), (4, expected))


def test_a_block_that_is_no_text_hashes_as_its_type_and_sorted_compact_json() -> None:
    image = {"type": "image", "source": {"url": "u", "kind": "é"}}
    fields = (0, "image"), (1, '{"source":{"kind":"é","url":"u"},"type":"image"}')
    assert assistant_fingerprint([says([image])]) == spoken(*fields)


def test_a_text_block_whose_text_is_no_string_hashes_as_a_block() -> None:
    fields = (0, "text"), (1, '{"text":5,"type":"text"}')
    assert assistant_fingerprint([says([{"type": "text", "text": 5}])]) == spoken(*fields)


def test_text_precedes_the_calls_of_its_item() -> None:
    item = says([MESSAGES_CALL["content"][0], {"type": "text", "text": "hi"}])
    fields = (0, "text"), (1, "hi"), (2, "k"), (3, "f"), (4, '{"a":2,"b":1}')
    assert assistant_fingerprint([item]) == spoken(*fields)


def test_what_others_wrote_cannot_spoil_the_fingerprint() -> None:
    assert assistant_fingerprint([{"role": "user", "content": 5}, says("hi")]) == assistant_fingerprint([says("hi")])


# The whole conversation


def test_a_conversation_has_the_digest_of_the_reference() -> None:
    one_turn = "a5110716f8f6611c9657ba388b2cc8445a916653f7853c8fd9c410f59ca07919"
    three_turns = "8c9c5d674841632272f8c6f4b77deacab6697bd1c66e24eda197c6605b2fc765"
    assert conversation_digest([USER]) == one_turn
    assert conversation_digest([USER, says("one"), {"role": "user", "content": "more"}]) == three_turns


def test_a_conversation_of_no_items_has_a_digest() -> None:
    assert conversation_digest([]) == context_of()


def test_a_conversation_hashes_role_content_calls_and_results_in_this_order() -> None:
    asked = (0, "user"), (1, "text"), (2, "q")
    called = (0, "function_call"), (3, "k"), (4, "f"), (5, '{"a":2,"b":1}')
    answered = (0, "function_call_output"), (6, "k"), (7, "42")
    assert conversation_digest([USER, CALL, RESULT, {}]) == context_of(*asked, *called, *answered, (0, ""))


def test_a_chat_result_enters_as_content_and_as_result() -> None:
    fields = (0, "tool"), (1, "text"), (2, "42"), (6, "k"), (7, "42")
    assert conversation_digest([{"role": "tool", "tool_call_id": "k", "content": "42"}]) == context_of(*fields)


def test_a_result_block_enters_as_result_only() -> None:
    block = {"type": "tool_result", "tool_use_id": "k", "content": [{"type": "text", "text": "42"}]}
    fields = (0, "user"), (6, "k"), (7, '[{"text":"42","type":"text"}]')
    assert conversation_digest([{"role": "user", "content": [block]}]) == context_of(*fields)


# What has no fingerprint


@pytest.mark.parametrize(
    "item",
    [
        pytest.param("assistant", id="item that is a string"),
        pytest.param(None, id="item that is null"),
        pytest.param(says(5), id="content that is a number"),
        pytest.param(says({"type": "text", "text": "hi"}), id="content that is an object"),
        pytest.param(says([{"texts": "hi"}]), id="block without type"),
        pytest.param(says([{"type": "", "text": 5}]), id="block with an empty type"),
        pytest.param(says([5]), id="block that is a number"),
        pytest.param(says([{"type": ["text"], "text": "hi"}]), id="type that is a list"),
        pytest.param(says("\ud800"), id="lone surrogate in text"),
        pytest.param(says([{"type": "image", "url": "\ud800"}]), id="lone surrogate in a block"),
        pytest.param(says(None) | {"tool_calls": {"id": "k"}}, id="tool_calls that are an object"),
        pytest.param(says(None) | {"tool_calls": ["f"]}, id="tool call that is a string"),
        pytest.param(says(None) | {"tool_calls": [{"function": "f"}]}, id="function that is a string"),
        pytest.param(calls(name=5), id="name that is a number"),
        pytest.param(calls(call_id=5), id="call id that is a number"),
        pytest.param(calls(arguments=2**64), id="number beyond 64 bits"),
        pytest.param(calls(arguments="-9223372036854775809"), id="number beyond 64 bits in text"),
        pytest.param(calls(arguments="1" * 5000), id="number that Python refuses to parse"),
        pytest.param(calls(arguments='"\\ud800"'), id="escaped lone surrogate"),
        pytest.param(calls(arguments=TOO_DEEP_FOR_ORJSON), id="arguments too deep for orjson"),
        pytest.param(calls(arguments=TOO_DEEP_FOR_PYTHON), id="arguments too deep for json"),
    ],
)
def test_a_shape_without_a_meaning_is_unfingerprintable(item: object) -> None:
    with pytest.raises(Unfingerprintable):
        assistant_fingerprint([item])
    with pytest.raises(Unfingerprintable):
        conversation_digest([item])


def test_a_role_that_is_no_text_is_unfingerprintable() -> None:
    with pytest.raises(Unfingerprintable):
        conversation_digest([{"role": 5, "content": "hi"}])


ITEM_KEYS = ["role", "type", "content", "call_id", "id", "name", "namespace", "arguments", "output", "tool_calls"]
OTHER_KEYS = ["text", "input", "function", "tool_call_id", "tool_use_id", "instructions", "tools", "messages"]
KINDS = ["assistant", "user", "tool", "message", "function_call", "function_call_output", "reasoning"]
BLOCKS = ["text", "input_text", "tool_use", "tool_result", "image"]
JSON_TEXTS = ['{"a": 1e999}', "[NaN]", '"\\ud800"', "18446744073709551616", "{"]
WORDS = st.sampled_from(ITEM_KEYS + OTHER_KEYS + KINDS + BLOCKS + JSON_TEXTS)
TEXTS = WORDS | st.text(st.characters(exclude_categories=()))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=6), max_leaves=20
)
ITEMS = JSON_VALUES | st.dictionaries(TEXTS, JSON_VALUES).map(lambda fields: {"role": "assistant"} | fields)


@given(st.lists(ITEMS, max_size=4))
def test_for_any_json_items_only_unfingerprintable_is_raised(items: list[object]) -> None:
    for digest in (assistant_fingerprint, conversation_digest):
        with contextlib.suppress(Unfingerprintable):
            assert isinstance(digest(items), str)
    assert all(isinstance(is_model_authored(item), bool) for item in items)


@given(st.dictionaries(TEXTS, JSON_VALUES))
def test_for_any_json_request_only_unfingerprintable_is_raised(request: dict[str, object]) -> None:
    with contextlib.suppress(Unfingerprintable):
        assert isinstance(request_items(request), list)


def test_tools_nested_too_deep_are_unfingerprintable() -> None:
    tools: list[object] = []
    for _ in range(100_000):
        tools = [tools]
    with pytest.raises(Unfingerprintable):
        request_items({"tools": tools})


@given(st.lists(st.sampled_from([USER, REASONING, CALL, RESULT, says("a"), says("b")])))
def test_reasoning_never_changes_the_fingerprint(items: list[object]) -> None:
    assert assistant_fingerprint([item for item in items if item != REASONING]) == assistant_fingerprint(items)


# Runs


def test_model_authored_means_an_assistant_role_or_a_function_call() -> None:
    assert all(map(is_model_authored, [says("hi"), CALL, CHAT_CALL, {"type": "message", "role": "assistant"}]))
    assert not any(map(is_model_authored, [USER, REASONING, RESULT, {}, None, "assistant", ["assistant"]]))


def test_the_trailing_run_ends_the_items() -> None:
    assert trailing_run([says("a"), RESULT, says("b"), CALL]) == [says("b"), CALL]
    assert trailing_run([says("a"), RESULT]) == []
    assert trailing_run([]) == []


def test_the_last_run_stands_anywhere() -> None:
    assert last_run([says("a"), RESULT, says("b"), CALL, RESULT, USER]) == [says("b"), CALL]
    assert last_run([says("a"), says("b")]) == [says("a"), says("b")]
    assert last_run([USER, RESULT]) == []


def test_reasoning_breaks_a_run() -> None:
    assert trailing_run([says("a"), REASONING, says("b")]) == [says("b")]
    assert trailing_run([says("a"), REASONING]) == []
    assert last_run([says("a"), REASONING, says("b"), REASONING]) == [says("b")]


# Requests


def test_request_items_are_its_messages_else_its_input() -> None:
    assert request_items({"messages": [USER], "input": [CALL]}) == [USER]
    assert request_items({"messages": None, "input": [CALL]}) == [CALL]


def test_a_plain_string_input_gives_no_items() -> None:
    assert request_items({"input": "q"}) == []


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"instructions": "é"}, '{"instructions": "\\u00e9", "tools": null}'),
        ({"tools": [{"type": "x", "name": "f"}]}, '{"instructions": null, "tools": [{"name": "f", "type": "x"}]}'),
    ],
)
def test_instructions_and_tools_become_one_item_in_front(fields: dict[str, object], content: str) -> None:
    envelope = {"role": "_ng_request_envelope", "content": content}
    assert request_items(fields | {"input": [USER]}) == [envelope, USER]


def test_empty_instructions_and_tools_are_no_item() -> None:
    assert request_items({"instructions": None, "tools": [], "messages": [USER]}) == [USER]


# Stamps of real captures


class Exchange(NamedTuple):
    place: str
    request_items: list[object]
    record: dict[str, Any]


@pytest.fixture(scope="module")
def exchanges() -> list[Exchange]:
    """Every captured request of the corpus that has a stamped token record of the same call."""
    default = Path(__file__).parents[2].parent / "shared" / "corpus"
    captures = Path(os.environ.get("NG_CAPTURE_CORPUS", default)) / "gym" / "capture"
    if not captures.is_dir():
        pytest.skip(f"no corpus: {captures} is not there")
    found = []
    for path in sorted(captures.glob("*.capture.jsonl")):
        tokens = path.with_name(path.name.replace(".capture.jsonl", ".tokens.jsonl"))
        records = {entry.get("model_call_id"): entry for entry in readable_lines(tokens)} if tokens.exists() else {}
        for exchange in readable_lines(path):
            call, request = exchange.get("model_call_id"), exchange.get("request")
            record = records.get(call, {})
            if record.get("fingerprint_version") == FINGERPRINT_VERSION and isinstance(request, dict):
                found.append(Exchange(f"{path.name}: {call}", request_items(request), record))
    if not found:
        pytest.skip(f"no call in {captures} has both a captured request and a stamped record")
    return found


def test_captured_requests_and_outputs_have_the_fingerprint_of_their_record(exchanges: list[Exchange]) -> None:
    differing = [
        place
        for place, items, record in exchanges
        if assistant_fingerprint([*items, *record["output_items"]]) != record["continuation_fingerprint"]
    ]
    assert differing == []


def test_captured_requests_have_the_context_digest_of_their_record(exchanges: list[Exchange]) -> None:
    whole = [
        exchange for exchange in exchanges if len(exchange.request_items) == exchange.record["continuation_context_len"]
    ]
    if not whole:
        pytest.skip(f"none of {len(exchanges)} captured requests has as many items as the stamp of its record covers")
    differing = [
        place for place, items, record in whole if conversation_digest(items) != record["continuation_context_digest"]
    ]
    assert differing == []
