"""No bytes crash `ingest`, and none make it write a token or a log probability that no response held."""

import gzip
import json
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.ingest.capture_line import capture_line
from tests.support.engines import ENGINES
from tests.support.forge import Row
from tests.support.hostile import encoded, held, numbers_in, survive
from tests.support.logs import ONE_CALL
from tests.support.raw_calls import streamed

EXAMPLES = settings(max_examples=60, deadline=None)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(0, 9)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", "token_id:5", "token_id:", "stop", "abort", "AQAAAA==", "r-1", "", "assistant"])
    | st.sampled_from([2**31, 2**63, 2**64, 10**400, 5.0, 1e308, -9999.0, -0.0, 0]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=4)
            | st.sampled_from(["id", "index", "token", "logprob", "token_ids", "content", "role", "type", "text"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


def row_of(name: str) -> Row:
    """The line of `.capture.jsonl` of a call of an engine."""
    call = ENGINES[name].call
    row: Row = json.loads(capture_line(call))
    if call.events:
        return streamed(row, [event for event in msgspec.to_builtins(call.events) if isinstance(event, dict)])
    return row


def events_of(row: Row) -> list[Any]:
    lines = str(row.get("response_raw") or "").splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def places_in(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every member of a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, each in members for place in [(*path, key), *places_in(each, (*path, key))]]


def put(value: Any, path: tuple[Any, ...], new: object) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def disturbed(data: st.DataObject, row: Row) -> Row:
    """The row with arbitrary values in some places of its request and of its response."""
    whole: Row = {"request": row["request"], "response": row["response"], "events": events_of(row)}
    for _ in range(data.draw(st.integers(1, 2))):
        places = places_in(whole)
        path = data.draw(st.sampled_from(places))
        put(whole, path, data.draw(json_values))
    changed = {**row, "request": whole["request"], "response": whole["response"]}
    events = whole["events"] if isinstance(whole["events"], list) else [whole["events"]]
    return streamed(changed, [json.dumps(event) for event in events]) if events else changed


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_is_trained_on_where_it_is_whole(name: str) -> None:
    """What the other tests rest on: undisturbed calls are written, and held by their responses."""
    data = encoded(row_of(name)) + b"\n"
    found = survive({"r-1.capture.jsonl": data})
    assert found and held(found, numbers_in(data))


@EXAMPLES
@given(name=st.sampled_from(sorted(ENGINES)), data=st.data())
def test_arbitrary_values_in_a_call_train_nothing_that_it_does_not_hold(name: str, data: st.DataObject) -> None:
    rows = [disturbed(data, row_of(name)) for _ in range(data.draw(st.integers(1, 2)))]
    rows = [{**row, "model_call_id": f"c{number}"} for number, row in enumerate(rows)]
    text = b"".join(encoded(row) + b"\n" for row in rows)
    found = survive({"r-1.capture.jsonl": text}, delta=data.draw(st.booleans()))
    assert held(found, numbers_in(text))


@EXAMPLES
@given(name=st.sampled_from(sorted(ONE_CALL)), data=st.data())
def test_arbitrary_values_in_any_log_train_nothing_that_it_does_not_hold(name: str, data: st.DataObject) -> None:
    file, text = ONE_CALL[name]
    rows = [json.loads(text)] if name in ("har", "harbor") else [json.loads(line) for line in text.splitlines()]
    for _ in range(data.draw(st.integers(1, 2))):
        put(rows, data.draw(st.sampled_from(places_in(rows))), data.draw(json_values))
    changed = b"".join(encoded(row) + b"\n" for row in rows)
    found = survive({file: changed}, data.draw(st.sampled_from([name, None])))
    assert held(found, numbers_in(changed))


PIECES = [b"]", b"[", b",", b'"', b"{", b"}", b"-", b"9" * 20, b"\\", b"\n", b"\0", b"1e400", b"NaN", b"\xff", b"null"]


def damaged(data: st.DataObject, text: bytes) -> bytes:
    """The bytes with some of them changed, cut, or there twice."""
    changed = bytearray(text)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(changed)))
        end = min(len(changed), start + data.draw(st.integers(0, 3) | st.integers(0, 200)))
        how = data.draw(st.sampled_from(["replace", "flip", "cut", "twice"]))
        if how == "replace":
            changed[start:end] = data.draw(st.binary(max_size=3) | st.sampled_from(PIECES))
        elif how == "flip":
            for place in range(start, min(end, start + 1)):
                changed[place] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "cut":
            del changed[start:end]
        else:
            changed[start:start] = changed[start:end]
    return bytes(changed)


@EXAMPLES
@given(name=st.sampled_from(sorted(ONE_CALL)), packed=st.sampled_from(["", "gzip", "zstd"]), data=st.data())
def test_damaged_bytes_in_any_log_train_nothing_that_it_does_not_hold(
    name: str, packed: str, data: st.DataObject
) -> None:
    file, text = ONE_CALL[name]
    if packed:
        text = gzip.compress(text, mtime=0) if packed == "gzip" else zstandard.ZstdCompressor().compress(text)
    changed = damaged(data, text)
    found = survive({file: changed}, data.draw(st.sampled_from([name, None])))
    assert held(found, numbers_in(changed))


@EXAMPLES
@given(name=st.sampled_from(sorted(ENGINES)), data=st.data())
def test_damaged_bytes_in_a_call_of_any_engine_train_nothing_that_it_does_not_hold(
    name: str, data: st.DataObject
) -> None:
    changed = damaged(data, encoded(row_of(name)) + b"\n")
    assert held(survive({"r-1.capture.jsonl": changed}), numbers_in(changed))


@EXAMPLES
@given(content=st.binary(max_size=200), file=st.sampled_from(["x.jsonl", "r-1.capture.jsonl", "r-1.tokens.jsonl"]))
def test_arbitrary_bytes_train_nothing(content: bytes, file: str) -> None:
    for name in ONE_CALL:
        assert survive({file: content}, name) == []


@EXAMPLES
@given(values=st.lists(json_values, max_size=3), name=st.sampled_from(sorted(ONE_CALL)))
def test_arbitrary_json_values_train_nothing(values: list[object], name: str) -> None:
    assert survive({"r-1.capture.jsonl": b"".join(encoded(value) + b"\n" for value in values)}, name) == []
