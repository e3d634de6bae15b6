"""What holds of every capture on its way through the contracts (contracts.md 4.8, 9.6)."""

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.contracts.interface import Written
from ng_capture.contracts.registry import writable
from tests.support.captured import ROLLOUT, converted, faults_in, put, written
from tests.support.forge import Forge, Row, in_lines
from tests.support.raw_calls import calls, chat_call, result, says, system, user
from tests.support.strategies import forges

T = TypeVar("T")
# every example converts several times
SOME = settings(max_examples=25)
MANY = settings(max_examples=50)
TEXTS = st.text(alphabet="ab <>é\n{}", min_size=1, max_size=6)


@st.composite
def talks(draw: st.DrawFn, max_calls: int = 5) -> list[Row]:
    """Calls of one agent: each goes on with all that was said; some fail, reasoning is not sent again."""
    turns: list[Row] = [system("S"), user(draw(TEXTS))]
    made: list[Row] = []
    ids = [1, 2]
    for number in range(draw(st.integers(1, max_calls))):
        at = float(number)
        if draw(st.integers(0, 4)) == 0:
            made.append(chat_call(f"f{number}", turns, None, status_code=500, error_category="upstream_error", at=at))
            continue
        tools = [
            (f"k{number}-{each}", "look_up", json.dumps({"word": draw(TEXTS)}))
            for each in range(draw(st.integers(0, 2)))
        ]
        answer = calls(*tools, text=draw(TEXTS)) if tools else says(draw(TEXTS))
        thinking = {"reasoning_content": draw(TEXTS)} if draw(st.booleans()) else {}
        generation = [10 + number, 11]
        made.append(chat_call(f"c{number}", turns, {**answer, **thinking}, prompt=ids, generation=generation, at=at))
        ids = [*ids, *generation, 7]
        turns = [*turns, answer, *(result(call_id, draw(TEXTS)) for call_id, _, _ in tools)]
        turns += [user(draw(TEXTS))] if not tools or draw(st.booleans()) else []
    return made


def in_directory(take: Callable[[Path], T], rows: Sequence[Row | bytes], kind: str = "capture") -> T:
    with tempfile.TemporaryDirectory() as directory:
        return take(put(Path(directory), rows, kind=kind))


def lines_of(rows: Sequence[Row | bytes], to: str, kind: str = "capture") -> list[Any]:
    def take(directory: Path) -> list[Any]:
        one = written(directory, to).written
        assert one is not None
        return [json.loads(each) for each in one.documents]

    return in_directory(take, rows, kind)


def items(rows: Sequence[Row]) -> tuple[list[Any], list[Any]]:
    """What was asked and what came out of a rollout, as items of Responses."""
    (row,) = lines_of(rows, "gym")
    return row["responses_create_params"]["input"], row["response"]["output"]


@given(talks(), st.integers(1, 5))
@MANY
def test_the_first_calls_give_the_first_items(rows: list[Row], count: int) -> None:
    answered = [row for row in rows[:count] if row["response"] is not None]
    if not answered:
        return
    asked, output = items(rows)
    asked_first, output_first = items(rows[:count])
    assert asked_first == asked
    assert output[: len(output_first)] == output_first


@given(talks(), st.integers(1, 5))
@SOME
def test_the_first_calls_give_the_first_steps_and_records(rows: list[Row], count: int) -> None:
    (whole,), (first,) = lines_of(rows, "eval"), lines_of(rows[:count], "eval")
    assert whole["steps"][: len(first["steps"])] == first["steps"]
    if any(row["response"] is not None for row in rows[:count]):
        records = lines_of(rows[:count], "tokens")
        assert lines_of(rows, "tokens")[: len(records)] == records


@given(talks())
@SOME
def test_the_same_calls_give_the_same_bytes(rows: list[Row]) -> None:
    def take(directory: Path) -> list[Any]:
        return [one.written for to in ("atif", "responses", "jsonl", "eval") for one in converted(directory, to)]

    assert in_directory(take, rows) == in_directory(take, rows)


def of_calls(value: Any) -> Any:
    """A document without what counts lines."""
    if isinstance(value, dict):
        return {
            key: of_calls(each) for key, each in value.items() if key not in ("call_index", "step_index", "conversion")
        }
    return [of_calls(each) for each in value] if isinstance(value, list) else value


@given(st.data())
@SOME
def test_where_a_line_stands_decides_nothing(data: st.DataObject) -> None:
    rows = data.draw(talks())
    shuffled = data.draw(st.permutations(rows))
    if all(row["response"] is None for row in rows):
        return
    for to in ("atif", "gym"):
        assert of_calls(lines_of(shuffled, to)) == of_calls(lines_of(rows, to))
    by_id = sorted(lines_of(rows, "tokens"), key=lambda row: str(row["model_call_id"]))
    assert sorted(lines_of(shuffled, "tokens"), key=lambda row: str(row["model_call_id"])) == by_id


@given(forges(), st.data())
@MANY
def test_records_come_out_as_they_went_in_whatever_their_order(forge: Forge, data: st.DataObject) -> None:
    lines = data.draw(st.permutations([call.line() for call in forge.calls]))
    if not lines:
        return

    def take(directory: Path) -> list[bytes]:
        (directory / f"{ROLLOUT}.tokens.jsonl").rename(directory / f"{forge.rollout_id}.tokens.jsonl")
        one = written(directory, "tokens").written
        assert isinstance(one, Written)
        return list(one.documents)

    assert sorted(map(json.loads, in_directory(take, lines, "tokens")), key=str) == sorted(
        map(json.loads, lines), key=str
    )


@given(forges())
@MANY
def test_ids_of_a_trajectory_are_those_of_the_calls(forge: Forge) -> None:
    if not forge.calls:
        return
    by_id = {call.id: call for call in forge.calls}

    def take(directory: Path) -> Any:
        (directory / f"{ROLLOUT}.tokens.jsonl").rename(directory / f"{forge.rollout_id}.tokens.jsonl")
        one = written(directory, "atif").written
        assert isinstance(one, Written)
        return json.loads(one.documents[0])

    stack = [in_directory(take, [call.line() for call in forge.calls], "tokens")]
    while stack:
        trajectory = stack.pop()
        stack += trajectory.get("subagent_trajectories", ())
        for step in trajectory["steps"]:
            if "completion_token_ids" in step.get("metrics", {}):
                call = by_id[step["extra"]["ng_capture"]["model_call_id"]]
                metrics = step["metrics"]
                assert metrics["prompt_token_ids"] == call.prompt
                assert metrics["completion_token_ids"] == call.generation
                assert metrics["logprobs"] == call.log_probs


VALUES = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2**70,
        1.5,
        "",
        "x",
        "\ud800",
        [],
        [1],
        [[1]],
        [None],
        ["x"],
        {},
        {"x": 1},
        [{}],
        {"type": "text"},
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in pairs for place in places(each, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another one at a place."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: changed(value[key], tuple(rest), new)}
    return [changed(each, tuple(rest), new) if at == key else each for at, each in enumerate(value)]


def sample() -> list[Row]:
    """A rollout of the three dialects with tools, reasoning, ids and usage."""
    look = calls(("k1", "look_up", '{"word":"x"}'), text="t", reasoning_content="r")
    chat = chat_call(
        "a",
        [system("S"), user("hi")],
        look,
        prompt=[1, 2],
        generation=[3],
        tools=[{"type": "function", "function": {"name": "look_up"}}],
    )
    chat["response"]["usage"] = {
        "prompt_tokens": 2,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 1},
    }
    blocks = [
        {"type": "thinking", "thinking": "r", "signature": "s"},
        {"type": "text", "text": "t"},
        {"type": "tool_use", "id": "k2", "name": "look_up", "input": {"word": "y"}},
    ]
    messages = {
        "model_call_id": "b",
        "dialect": "messages",
        "started_at": 1.0,
        "completed_at": 1.5,
        "status_code": 200,
        "request": {
            "model": "m",
            "max_tokens": 5,
            "system": [{"type": "text", "text": "T"}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
        },
        "response": {
            "id": "m1",
            "role": "assistant",
            "content": blocks,
            "usage": {"input_tokens": 1, "output_tokens": 2},
        },
    }
    output = [
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "r"}]},
        {
            "type": "message",
            "id": "i1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "t", "annotations": []}],
            "prompt_token_ids": [1],
            "generation_token_ids": [2],
            "generation_log_probs": [-0.5],
        },
    ]
    responses = {
        "model_call_id": "c",
        "dialect": "responses",
        "started_at": 2.0,
        "completed_at": 2.5,
        "status_code": 200,
        "request": {
            "instructions": "S",
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "function_call", "call_id": "k1", "name": "look_up", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "k1", "output": "o"},
            ],
        },
        "response": {"id": "r", "output": output, "usage": {"input_tokens": 1, "output_tokens": 1}},
    }
    return [chat, messages, responses]


def record_of_sample() -> Row:
    forge = Forge(ROLLOUT)
    return forge.root([1, 2], [3], id="a").record()


SAMPLE = sample()
PLACES = [(at, place) for at, row in enumerate(SAMPLE) for place in places(row)]


def survive(directory: Path) -> None:
    """Every contract takes what lies there, or refuses it by name; all that is written is JSON."""
    faults_in(directory)
    for to in writable():
        for one in converted(directory, to):
            assert one.written is not None or one.faults
            for each in one.written.documents if one.written is not None else ():
                json.loads(each)


@given(st.sampled_from(PLACES), VALUES)
@MANY
def test_a_value_of_any_other_kind_crashes_nothing(place: tuple[int, tuple[Any, ...]], new: Any) -> None:
    at, path = place
    rows = [changed(row, path, new) if number == at else row for number, row in enumerate(SAMPLE)]
    in_directory(survive, rows)


@given(st.sampled_from(places(record_of_sample())), VALUES)
def test_a_value_of_any_other_kind_in_a_record_crashes_nothing(path: tuple[Any, ...], new: Any) -> None:
    in_directory(survive, [changed(record_of_sample(), path, new)], "tokens")


@given(st.data())
@SOME
def test_bytes_that_were_changed_or_cut_crash_nothing(data: st.DataObject) -> None:
    whole = in_lines(json.dumps(row).encode() for row in SAMPLE)
    at = data.draw(st.integers(0, len(whole) - 1))
    struck = whole[:at] + data.draw(st.binary(max_size=2)) + whole[at + data.draw(st.integers(0, 3)) :]
    if data.draw(st.booleans()):
        struck = struck[:at]

    def take(directory: Path) -> None:
        (directory / f"{ROLLOUT}.capture.jsonl").write_bytes(struck)
        survive(directory)

    in_directory(take, [])


@pytest.mark.parametrize("depth", [100, 900, 5000])
def test_what_is_nested_deeply_crashes_nothing(tmp_path: Path, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    line = json.dumps(SAMPLE[0] | {"request": "DEEP"}).encode().replace(b'"DEEP"', b'{"messages":%b}' % deep)
    survive(put(tmp_path, [line, json.dumps(SAMPLE[1]).encode().replace(b'{"word": "y"}', b'{"word":%b}' % deep)]))
