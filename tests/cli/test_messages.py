"""`ng-capture rebuild --to messages`: the conversations of trained chains as SFT trainers take them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ng_capture.outputs.shapes import SHAPES
from tests.support.command import Run, run
from tests.support.dialects import ARGUMENTS, FOUND, REQUESTS, RESPONSES, STREAMS
from tests.support.forge import Forge, Row, write_rows
from tests.support.raw_calls import calls, chat_call, result, says, streamed, system, user, write_capture

SYSTEM, USER = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is a quern?"}
CALLING = {
    "role": "assistant",
    "content": "Let me look.",
    "reasoning_content": "I should look.",
    "tool_calls": [{"id": "k1", "type": "function", "function": {"name": "look_up", "arguments": ARGUMENTS}}],
    "weight": 1,
}
TOOL = {"role": "tool", "content": FOUND, "tool_call_id": "k1"}
PLAIN: dict[str, Row] = {
    "chat": {"id": "c2", "model": "m", "choices": [{"message": {"role": "assistant", "content": "A hand mill."}}]},
    "responses": {
        "id": "c2",
        "model": "m",
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A hand mill."}]}
        ],
    },
    "messages": {"id": "c2", "model": "m", "content": [{"type": "text", "text": "A hand mill."}]},
}


def two_calls(directory: Path, rollout_id: str = "7-0") -> Forge:
    """13 tokens of a call a that calls a tool and of a call b that answers."""
    forge = Forge(rollout_id)
    forge.root([1, 2], list(range(3, 12)), id="a").then([5], [6], id="b")
    forge.write(directory)
    return forge


def exported(directory: Path, *options: object) -> list[Any]:
    out = directory.parent / "out.jsonl"
    done = rebuild(directory, *options)
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    for row in rows:
        SHAPES["messages-row"].model_validate(row)
    return rows


def rebuild(directory: Path, *options: object) -> Run:
    return run("rebuild", directory, "--to", "messages", "-o", directory.parent / "out.jsonl", *options)


def talk(directory: Path, raw: Sequence[Row], rollout_id: str = "7-0") -> None:
    write_capture(directory, rollout_id, raw)


def in_dialect(dialect: str, *, stream: bool = False) -> list[Row]:
    """The two calls: first what stands before the tool call, then all but the last answer."""
    request, key = REQUESTS[dialect], "input" if dialect == "responses" else "messages"
    turns = request[key]
    place = {"chat": 2, "responses": 1, "messages": 1}[dialect]
    asked = [{**request, key: turns[:place]}, {**request, key: turns[:-1]}]
    answers = [RESPONSES[dialect], PLAIN[dialect]]
    made = [
        chat_call(call_id, [], None, dialect=dialect) | {"request": told, "response": answer}
        for call_id, told, answer in zip("ab", asked, answers, strict=True)
    ]
    return [streamed(made[0], STREAMS[dialect]), made[1]] if stream else made


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_the_conversation_is_the_same_in_every_dialect(tmp_path: Path, dialect: str, stream: bool) -> None:
    store = tmp_path / "store"
    two_calls(store)
    talk(store, in_dialect(dialect, stream=stream))
    (row,) = exported(store)
    said = row["messages"]
    arguments = said[2]["tool_calls"][0]["function"].pop("arguments")
    assert json.loads(arguments) == json.loads(ARGUMENTS)
    calling = {**CALLING, "tool_calls": [{"id": "k1", "type": "function", "function": {"name": "look_up"}}]}
    assert said == [SYSTEM, USER, calling, TOOL, {"role": "assistant", "content": "A hand mill.", "weight": 1}]


def test_a_row_knows_its_rollout_and_what_it_earned(tmp_path: Path) -> None:
    store = tmp_path / "store"
    forge = Forge("7-0")
    first = forge.root([1, 2], [3], id="a")
    scored = first.then([4], [5], id="b")
    first.then([9], [10], id="s")
    forge.write(store, raw=True)
    write_rows(tmp_path / "rows.jsonl", [{**forge.row(scored, reward=0.5), "_ng_task_index": 7}])
    rows = exported(store, "--rollouts", tmp_path / "rows.jsonl", "--policy", "all")
    told = [(row["rollout_id"], row["group_id"], row["reward"], row["call_id"]) for row in rows]
    assert told == [("7-0", "7", 0.5, "b"), ("7-0", "7", 0.5, "s")]
    assert [(row["trajectory_index"], row["n_trajectories"]) for row in rows] == [(0, 2), (1, 2)]
    assert [row["row_weight"] for row in rows] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    # what both chains share is trained in one of them
    weights = [[turn["weight"] for turn in row["messages"] if turn["role"] == "assistant"] for row in rows]
    assert weights == [[1, 1], [0, 1]]
    assert '"reward":0.5' in (tmp_path / "out.jsonl").read_text()


@pytest.mark.parametrize(
    ("shape", "tools"),
    [
        ("chat", [{"type": "function", "function": {"name": "ls", "description": "d", "parameters": {"type": "x"}}}]),
        ("responses", [{"type": "function", "name": "ls", "description": "d", "parameters": {"type": "x"}}]),
        ("messages", [{"name": "ls", "description": "d", "input_schema": {"type": "x"}}]),
    ],
)
def test_tools_are_those_of_the_request_in_one_form(tmp_path: Path, shape: str, tools: Any) -> None:
    store = tmp_path / "store"
    two_calls(store)
    raw = in_dialect(shape)
    raw[1]["request"] = {**raw[1]["request"], "tools": tools}
    talk(store, raw)
    (row,) = exported(store)
    function = {"name": "ls", "description": "d", "parameters": {"type": "x"}}
    assert json.loads(row["tools"]) == [{"type": "function", "function": function}]


def test_turns_that_nobody_trained_weigh_nothing(tmp_path: Path) -> None:
    """An example in the prompt, and an answer whose words a later request tells otherwise."""
    store = tmp_path / "store"
    two_calls(store)
    example = [user("2 + 2"), says("4")]
    first = [system("Count."), *example, user("3 + 3")]
    raw = [
        chat_call("a", first, says("6")),
        chat_call("b", [*first, says("six, as I said"), user("4 + 4")], says("8")),
    ]
    talk(store, raw)
    (row,) = exported(store)
    told = [(turn["content"], turn["weight"]) for turn in row["messages"] if turn["role"] == "assistant"]
    assert told == [("4", 0), ("six, as I said", 0), ("8", 1)]
    assert all("weight" not in turn for turn in row["messages"] if turn["role"] != "assistant")


def test_calls_of_another_model_weigh_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    forge = Forge("7-0")
    forge.root([1, 2], [3, 4], id="a", model="other").then([5], [6], id="b")
    forge.write(store)
    talk(store, [chat_call("a", [user("x")], says("y")), chat_call("b", [user("x"), says("y"), user("z")], says("w"))])
    (row,) = exported(store, "--policy-model", "policy-8b")
    assert [turn.get("weight") for turn in row["messages"]] == [None, 0, None, 1]


def test_thoughts_that_are_not_sent_again_stand_where_they_were_thought(tmp_path: Path) -> None:
    store = tmp_path / "store"
    two_calls(store)
    answer = calls(("k", "ls", '{"a": 1}'), reasoning_content="hm")
    again = calls(("k", "ls", '{"a":1}'))
    talk(
        store,
        [chat_call("a", [user("x")], answer), chat_call("b", [user("x"), again, result("k", "r")], says("done"))],
    )
    (row,) = exported(store)
    assert row["messages"][1]["reasoning_content"] == "hm" and row["messages"][1]["weight"] == 1
    assert row["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'


@pytest.mark.parametrize(("again", "weight"), [("{not json", 1), ("{not  json", 0)])
def test_arguments_that_are_no_json_are_the_same_where_every_letter_is(tmp_path: Path, again: str, weight: int) -> None:
    store = tmp_path / "store"
    two_calls(store)
    asked, answer = [user("x")], calls(("k", "ls", "{not json"))
    later = [*asked, calls(("k", "ls", again)), result("k", "no")]
    talk(store, [chat_call("a", asked, answer), chat_call("b", later, says("done"))])
    (row,) = exported(store)
    assert [turn.get("weight") for turn in row["messages"]] == [None, weight, None, 1]


def test_blocks_of_instructions_and_results_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    store = tmp_path / "store"
    two_calls(store)
    raw = in_dialect("messages")
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    raw[1]["request"] = {**raw[1]["request"], "system": blocks}
    talk(store, raw)
    assert exported(store)[0]["messages"][0] == {"role": "system", "content": "one\ntwo"}


def _image(raw: list[Row]) -> None:
    raw[1]["request"]["messages"][0] = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}


def _held(raw: list[Row]) -> None:
    raw[1]["request"]["previous_response_id"] = "resp"


def _unanswered(raw: list[Row]) -> None:
    raw[1]["response"] = None


def _begun(raw: list[Row]) -> None:
    raw[1]["request"]["messages"].append(says("It is"))


def _twice(raw: list[Row]) -> None:
    raw.append(chat_call("b", raw[1]["request"]["messages"], says("Another answer.")))


@pytest.mark.parametrize("spoil", [_image, _held, _unanswered, _begun, _twice])
def test_what_is_no_whole_text_is_left_out_and_not_covered(tmp_path: Path, spoil: Any) -> None:
    store = tmp_path / "store"
    two_calls(store)
    raw = json.loads(json.dumps(in_dialect("chat")))
    spoil(raw)
    talk(store, raw)
    done = rebuild(store)
    assert (tmp_path / "out.jsonl").read_bytes() == b""
    assert done.code == 0 and "rows left out: messages_missing 1" in done.err
    receipt = json.loads((tmp_path / "out.jsonl.receipt.json").read_bytes())
    assert [(entry["covered"], entry["rows"]) for entry in receipt["rollouts"]] == [(False, [])]


def test_a_rollout_without_raw_calls_is_left_out(tmp_path: Path) -> None:
    store = tmp_path / "store"
    two_calls(store)
    two_calls(store, "8-0")
    talk(store, in_dialect("chat"), "8-0")
    assert [row["rollout_id"] for row in exported(store)] == ["8-0"]
    done = rebuild(store)
    assert "rows left out: messages_missing 1" in done.err and "messages_missing" in run("reason").out
    receipt = json.loads((tmp_path / "out.jsonl.receipt.json").read_bytes())
    assert {entry["rollout_id"]: entry["covered"] for entry in receipt["rollouts"]} == {"7-0": False, "8-0": True}


def test_an_answer_that_stopped_at_its_limit_weighs_nothing_where_that_is_asked_for(tmp_path: Path) -> None:
    store = tmp_path / "store"
    two_calls(store)
    raw = in_dialect("chat")
    raw[1]["response"] = {"id": "c2", "choices": [{"message": says("A hand"), "finish_reason": "length"}]}
    talk(store, raw)
    assert [turn.get("weight") for turn in exported(store)[0]["messages"]] == [None, None, 1, None, 1]
    (row,) = exported(store, "--mask-truncated")
    assert [turn.get("weight") for turn in row["messages"]] == [None, None, 1, None, 0]


def test_long_rows_are_left_out_and_never_cut(tmp_path: Path) -> None:
    store = tmp_path / "store"
    two_calls(store)
    talk(store, in_dialect("chat"))
    assert exported(store, "--max-length", "13") and not exported(store, "--max-length", "12")
    done = rebuild(store, "--max-length", "12", "--on-overflow", "fail")
    assert done.code == 2 and "7-0: 13 tokens, at most 12" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-length", "12", "--on-overflow", "cut"), "nothing is cut"),
        (("--advantage", "grpo"), "no place for advantages"),
        (("--min-gap", "1"), "--min-gap is about pairs"),
        (("--attach-calls",), "training rows hold no calls"),
    ],
)
def test_what_makes_no_sense_is_wrong_use(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    store = tmp_path / "store"
    two_calls(store)
    done = rebuild(store, *options)
    assert done.code == 2 and message in done.err and "hint:" in done.err
    assert not (tmp_path / "out.jsonl").exists()


def test_text_is_no_table(tmp_path: Path) -> None:
    store = tmp_path / "store"
    two_calls(store)
    done = run("rebuild", store, "--to", "messages", "-o", tmp_path / "out.parquet")
    assert done.code == 2 and "messages is JSONL" in done.err


@pytest.mark.parametrize(
    ("spoil", "invariant"),
    [
        (lambda row: row["messages"][1].update(content="other"), "I1"),
        (lambda row: row["messages"].pop(), "I1"),
        (lambda row: row["messages"][0].update(weight=1), "I3"),
        (lambda row: row["messages"][2].update(weight=0), "I6"),
        (lambda row: row.update(reward=1.0), "I18"),
        (lambda row: row.update(group_id="1"), "I19"),
        (lambda row: row.update(tools="[]"), "I29"),
    ],
)
def test_whatever_is_changed_is_found(tmp_path: Path, spoil: Any, invariant: str) -> None:
    store, out = tmp_path / "store", tmp_path / "out.jsonl"
    two_calls(store)
    talk(store, in_dialect("chat"))
    exported(store)
    assert run("verify", "--export", out, store).code == 0
    row = json.loads(out.read_text())
    spoil(row)
    out.write_text(json.dumps(row) + "\n")
    done = run("verify", "--export", out, store, "--json")
    assert done.code == 1 and {each["invariant"] for each in done.rows} == {invariant, "receipt"}


def test_processes_change_no_byte(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number in range(3):
        two_calls(store, f"{number}-0")
        talk(store, in_dialect("chat"), f"{number}-0")
    exported(store)
    before = (tmp_path / "out.jsonl").read_bytes()
    exported(store, "--jobs", "2")
    assert (tmp_path / "out.jsonl").read_bytes() == before
