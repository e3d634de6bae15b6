"""Raw calls as trajectories: who said what to whom, told once (contracts.md 3.5 and 7.2, T-CA)."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.captured import ROLLOUT, codes, converted, document, put, steps, written
from tests.support.forge import Forge, Row
from tests.support.raw_calls import calls, chat_call, result, says, streamed, system, user


def used(row: Row, read: int, wrote: int) -> Row:
    return {**row, "response": {**row["response"], "usage": {"prompt_tokens": read, "completion_tokens": wrote}}}


ASK = user("What is a quern?")
LOOK = calls(("k1", "look_up", '{"word":"quern"}'), text="")
FOUND = result("k1", "a hand mill")


def talk_with_a_tool() -> list[Row]:
    return [
        used(chat_call("a", [ASK], LOOK, finish="tool_calls", latency_ms=500.0), 20, 9),
        used(chat_call("b", [ASK, LOOK, FOUND], says("A hand mill."), at=1.0), 40, 5),
    ]


def test_a_tool_call_and_its_result_are_one_step_of_the_agent(tmp_path: Path) -> None:
    trajectory = document(put(tmp_path, talk_with_a_tool()), "atif")
    assert steps(trajectory) == [
        ("user", "What is a quern?", [], []),
        ("agent", "", ["k1"], [("k1", "a hand mill")]),
        ("agent", "A hand mill.", [], []),
    ]
    agents = trajectory["steps"][1:]
    assert [step["llm_call_count"] for step in agents] == [1, 1]
    assert [step["metrics"]["prompt_tokens"] for step in agents] == [20, 40]
    totals = trajectory["final_metrics"]
    assert (totals["total_prompt_tokens"], totals["total_completion_tokens"], totals["total_steps"]) == (60, 14, 3)


def test_a_step_tells_of_its_call(tmp_path: Path) -> None:
    (_, first, _) = document(put(tmp_path, talk_with_a_tool()), "atif")["steps"]
    assert first["timestamp"] == "1970-01-01T00:00:00.500000Z"
    told = first["extra"]["ng_capture"]
    assert {
        key: told[key] for key in ("model_call_id", "call_index", "dialect", "latency_total_ms", "status_code")
    } == {
        "model_call_id": "a",
        "call_index": 0,
        "dialect": "chat",
        "latency_total_ms": 500.0,
        "status_code": 200,
    }
    assert told["finish_reason"] == "tool_calls"


def test_a_step_keeps_how_its_call_came_about_where_that_is_not_the_usual(tmp_path: Path) -> None:
    usual = {"upstream_attempted": True, "response_source": "upstream", "upstream_status_code": 200}
    odd = {**usual, "response_source": "local", "local_response_reason": "budget", "client_session_id": "s-1"}
    rows = [
        {**chat_call("a", [user("hi")], says("Hello.")), **usual},
        {**chat_call("b", [user("hi"), says("Hello."), user("bye")], says("Bye."), at=1.0), **odd, "turn_index": "?"},
    ]
    _, first, _, last = document(put(tmp_path, rows), "atif")["steps"]
    assert "captured" not in first["extra"]["ng_capture"]
    told = {"response_source": "local", "local_response_reason": "budget", "client_session_id": "s-1"}
    assert last["extra"]["ng_capture"]["captured"] == told


def test_reasoning_that_is_not_sent_again_breaks_no_chain(tmp_path: Path) -> None:
    thinking = says("Hello.", reasoning_content="They greet.")
    rows = [
        chat_call("a", [user("hi")], thinking),
        chat_call("b", [user("hi"), says("Hello."), user("bye")], says("Bye."), at=1.0),
    ]
    one = document(put(tmp_path, rows), "atif")
    assert [step[1] for step in steps(one)] == ["hi", "Hello.", "bye", "Bye."]
    assert one["steps"][1]["reasoning_content"] == "They greet."
    assert "subagent_trajectories" not in one


def test_other_words_for_the_same_arguments_break_no_chain(tmp_path: Path) -> None:
    spaced = calls(("k1", "look_up", '{ "word" : "quern" }'), text="")
    rows = [chat_call("a", [ASK], LOOK), chat_call("b", [ASK, spaced, FOUND], says("A hand mill."), at=1.0)]
    assert len(document(put(tmp_path, rows), "atif")["steps"]) == 3


def test_a_conversation_of_somebody_else_is_a_sub_agent(tmp_path: Path) -> None:
    rows = [
        chat_call("a", [system("S"), user("go")], says("one")),
        chat_call("b", [system("You name things."), user("title?")], says("A title"), at=0.1),
        chat_call("c", [system("S"), user("go"), says("one"), user("on")], says("two"), at=1.0),
    ]
    one = written(put(tmp_path, rows), "atif")
    trajectory = document(tmp_path, "atif")
    assert [step[1] for step in steps(trajectory) if step[0] == "agent"] == ["one", "two"]
    (child,) = trajectory["subagent_trajectories"]
    assert [step[1] for step in steps(child)] == ["You name things.", "title?", "A title"]
    assert codes(one)["subagent_parent_unknown"] == 1
    references = [
        each["trajectory_id"]
        for step in trajectory["steps"]
        for each_result in step.get("observation", {}).get("results", ())
        for each in each_result.get("subagent_trajectory_ref", ())
    ]
    assert references == [child["trajectory_id"]]


def test_a_sub_agent_hangs_on_the_call_that_asked_it(tmp_path: Path) -> None:
    task = calls(
        ("k1", "task", '{"prompt":"count the files","who":"counter"}'), ("k2", "look_up", '{"word":"x"}'), text=""
    )
    rows = [
        chat_call("a", [system("S"), user("go")], task),
        chat_call("b", [system("You count."), user("count the files")], says("3"), at=1.0),
        chat_call(
            "c", [system("S"), user("go"), task, result("k1", "3 files"), result("k2", "y")], says("done"), at=2.0
        ),
    ]
    one = written(put(tmp_path, rows), "atif")
    trajectory = document(tmp_path, "atif")
    results = trajectory["steps"][2]["observation"]["results"]
    (child,) = trajectory["subagent_trajectories"]
    assert results[0]["source_call_id"] == "k1"
    assert results[0]["content"] == "3 files"
    assert [each["trajectory_id"] for each in results[0]["subagent_trajectory_ref"]] == [child["trajectory_id"]]
    assert "subagent_trajectory_ref" not in results[1]
    assert "subagent_parent_unknown" not in codes(one)


def test_an_unanswered_call_still_tells_which_agent_it_began(tmp_path: Path) -> None:
    task = calls(("k1", "task", '{"prompt":["count the files please"]}'), text="")
    rows = [
        chat_call("a", [user("go")], task),
        chat_call("b", [system("You count."), user("count the files")], says("3"), at=1.0),
    ]
    one = written(put(tmp_path, rows), "atif")
    trajectory = document(tmp_path, "atif")
    (only,) = trajectory["steps"][1]["observation"]["results"]
    assert only["source_call_id"] == "k1"
    assert only["subagent_trajectory_ref"]
    assert codes(one)["tool_output_not_captured"] == 1


def test_a_history_that_was_compacted_goes_on_in_the_same_trajectory(tmp_path: Path) -> None:
    rows = [
        chat_call("a", [system("S"), user("go")], says("one")),
        chat_call("b", [system("S"), user("go"), says("one"), user("on")], says("two"), at=1.0),
        chat_call("c", [system("S"), user("summary: one, two")], says("three"), at=2.0),
    ]
    one = written(put(tmp_path, rows), "atif")
    trajectory = document(tmp_path, "atif")
    assert "subagent_trajectories" not in trajectory
    event = next(step for step in trajectory["steps"] if (step.get("extra") or {}).get("context_management"))
    assert event["source"] == "system"
    assert event["extra"]["context_management"] == {"type": "compaction", "boundary": "replace"}
    assert [step[1] for step in steps(trajectory) if step[0] == "agent"] == ["one", "two", "three"]
    assert codes(one)["history_rewritten"] == 1


def test_answers_that_a_compacted_history_repeats_are_copies(tmp_path: Path) -> None:
    rows = [
        chat_call("a", [system("S"), user("go")], says("one")),
        chat_call("b", [system("S"), user("go"), says("one"), user("on")], says("two"), at=1.0),
        chat_call("c", [system("S"), says("two"), user("more")], says("three"), at=2.0),
    ]
    one = written(put(tmp_path, rows), "atif")
    trajectory = document(tmp_path, "atif")
    agents = [step for step in trajectory["steps"] if step["source"] == "agent"]
    assert [(step["message"], step.get("is_copied_context", False)) for step in agents] == [
        ("one", False),
        ("two", False),
        ("two", True),
        ("three", False),
    ]
    assert "metrics" not in agents[2]
    assert codes(one)["copied_context"] == 1


def test_a_refused_call_makes_no_step(tmp_path: Path) -> None:
    rows = [
        chat_call("a", [user("hi")], None, status_code=429, error_category="rate_limit"),
        chat_call("b", [user("hi")], says("Hello."), at=1.0),
    ]
    one = written(put(tmp_path, rows), "atif")
    trajectory = document(tmp_path, "atif")
    assert steps(trajectory) == [("user", "hi", [], []), ("agent", "Hello.", [], [])]
    assert codes(one)["failed_call_omitted"] == 1
    assert trajectory["extra"]["ng_capture"]["failed_calls"] == {"rate_limit": 1}


def test_where_every_call_failed_what_was_asked_is_told(tmp_path: Path) -> None:
    rows = [chat_call("a", [user("hi")], None, status_code=500, error_category="upstream_error")]
    assert steps(document(put(tmp_path, rows), "atif")) == [("user", "hi", [], [])]


def test_of_two_answers_to_one_request_the_one_that_was_used_stays(tmp_path: Path) -> None:
    rows = [
        chat_call("a", [user("hi")], says("used")),
        chat_call("b", [user("hi")], says("thrown away"), at=1.0),
        chat_call("c", [user("hi"), says("used"), user("on")], says("end"), at=2.0),
    ]
    one = written(put(tmp_path, rows), "atif")
    assert [step[1] for step in steps(document(tmp_path, "atif")) if step[0] == "agent"] == ["used", "end"]
    assert codes(one)["retry_collapsed"] == 1


def test_of_two_answers_that_nothing_uses_the_last_stays(tmp_path: Path) -> None:
    rows = [chat_call("a", [user("hi")], says("first")), chat_call("b", [user("hi")], says("second"), at=1.0)]
    assert [step[1] for step in steps(document(put(tmp_path, rows), "atif"))] == ["hi", "second"]


def test_results_that_were_never_sent_are_not_invented(tmp_path: Path) -> None:
    one = written(put(tmp_path, [chat_call("a", [ASK], LOOK)]), "atif")
    assert steps(document(tmp_path, "atif"))[1] == ("agent", "", ["k1"], [])
    assert codes(one)["tool_output_not_captured"] == 1


def test_three_dialects_in_one_rollout_are_one_conversation(tmp_path: Path) -> None:
    rows: list[Row] = [
        chat_call("a", [user("hi")], says("one")),
        {
            "model_call_id": "b",
            "dialect": "messages",
            "started_at": 1.0,
            "completed_at": 1.5,
            "status_code": 200,
            "request": {
                "model": "m",
                "max_tokens": 9,
                "messages": [user("hi"), says("one"), user("two?")],
            },
            "response": {"id": "msg", "role": "assistant", "content": [{"type": "text", "text": "two"}], "model": "m"},
        },
        {
            "model_call_id": "c",
            "dialect": "responses",
            "started_at": 2.0,
            "completed_at": 2.5,
            "status_code": 200,
            "request": {"input": [user("hi"), says("one"), user("two?"), says("two"), user("three?")]},
            "response": {
                "id": "resp",
                "output": [
                    {
                        "type": "message",
                        "id": "m1",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "three"}],
                    }
                ],
            },
        },
    ]
    trajectory = document(put(tmp_path, rows), "atif")
    assert [step[1] for step in steps(trajectory)] == ["hi", "one", "two?", "two", "three?", "three"]
    dialects = [step["extra"]["ng_capture"]["dialect"] for step in trajectory["steps"] if step["source"] == "agent"]
    assert dialects == ["chat", "messages", "responses"]


def test_a_response_that_the_server_keeps_is_gone_on_with_by_its_name(tmp_path: Path) -> None:
    def call(call_id: str, asked: list[Row], text: str, at: float, **request: Any) -> Row:
        output = [
            {
                "type": "message",
                "id": f"m{call_id}",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text}],
            }
        ]
        return {
            "model_call_id": call_id,
            "dialect": "responses",
            "started_at": at,
            "completed_at": at + 0.5,
            "status_code": 200,
            "request": {"instructions": "S", "input": asked, **request},
            "response": {"id": f"resp-{call_id}", "output": output},
        }

    rows = [
        call("a", [user("hi")], "one", 0.0),
        call("b", [user("on")], "two", 1.0, previous_response_id="resp-a"),
    ]
    trajectory = document(put(tmp_path, rows), "atif")
    assert [step[1] for step in steps(trajectory)] == ["S", "hi", "one", "on", "two"]


@pytest.mark.parametrize("marker", [b"", b"some text\n"])
def test_a_mark_of_lost_calls_is_a_gap_of_the_trajectory(tmp_path: Path, marker: bytes) -> None:
    put(tmp_path, talk_with_a_tool())
    (tmp_path / f"{ROLLOUT}.capture.incomplete").write_bytes(marker)
    one = written(tmp_path, "atif")
    gaps = document(tmp_path, "atif")["extra"]["ng_capture"]["gaps"]
    assert gaps == [{"code": "model_call_capture_incomplete"}]
    assert [fault.rule for fault in one.faults] == ["capture.capture_incomplete"]


def test_a_torn_last_line_is_told_and_the_rest_is_converted(tmp_path: Path) -> None:
    put(tmp_path, talk_with_a_tool())
    path = tmp_path / f"{ROLLOUT}.capture.jsonl"
    path.write_bytes(path.read_bytes() + b'{"model_call_id": "c", "requ')
    one = written(tmp_path, "atif")
    assert [(fault.rule, fault.severity, fault.line) for fault in one.faults] == [("capture.torn_tail", "error", 3)]
    trajectory = document(tmp_path, "atif")
    assert len(trajectory["steps"]) == 3
    assert trajectory["extra"]["ng_capture"]["gaps"] == [
        {"code": "model_call_capture_records_unreadable", "detail": "count=1"}
    ]


def cut_stream() -> Row:
    pieces = [{"id": "r", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "half an ans"}}]}]
    return streamed(chat_call("a", [user("hi")], None), pieces, done=False)


def test_a_stream_without_its_end_is_a_failed_call(tmp_path: Path) -> None:
    again = chat_call("b", [user("hi")], says("a whole answer"), at=1.0)
    one = written(put(tmp_path, [cut_stream(), again]), "atif")
    assert [step[1] for step in steps(document(tmp_path, "atif"))] == ["hi", "a whole answer"]
    assert [(loss.code, loss.detail) for loss in one.losses if loss.code == "failed_call_omitted"] == [
        ("failed_call_omitted", "stream_truncated")
    ]
    assert "capture.stream_truncated" in [fault.rule for fault in one.faults]


def test_what_came_of_a_cut_stream_stays_where_the_conversation_goes_on_with_it(tmp_path: Path) -> None:
    then = chat_call("b", [user("hi"), says("half an ans"), user("go on")], says("wer"), at=1.0)
    one = written(put(tmp_path, [cut_stream(), then]), "atif")
    trajectory = document(tmp_path, "atif")
    assert [step[1] for step in steps(trajectory)] == ["hi", "half an ans", "go on", "wer"]
    assert trajectory["steps"][1]["extra"]["ng_capture"]["error_category"] == "stream_truncated"
    assert codes(one)["stream_rebuilt"] == 1


def test_numbers_without_texts_are_converted_only_where_that_is_asked_for(tmp_path: Path) -> None:
    row = {
        "model_call_id": "a",
        "dialect": "chat",
        "status_code": 200,
        "tokens_in": 7,
        "tokens_out": 2,
        "completed_at": 1.0,
    }
    (refused,) = converted(put(tmp_path, [row]), "atif")
    assert refused.written is None
    assert [fault.rule for fault in refused.faults] == ["capture.conversation_unavailable"]
    trajectory = document(tmp_path, "atif", metrics_only=True)
    (only,) = trajectory["steps"]
    assert only["message"] == ""
    assert (only["metrics"]["prompt_tokens"], only["metrics"]["completion_tokens"]) == (7, 2)


def test_parameters_in_which_requests_differ_are_told(tmp_path: Path) -> None:
    rows = talk_with_a_tool()
    rows[0]["request"]["temperature"], rows[1]["request"]["temperature"] = 0.5, 1.0
    one = written(put(tmp_path, rows), "gym")
    lost = [loss for loss in one.losses if loss.code == "request_fields_dropped"]
    assert [(loss.detail, loss.path) for loss in lost] == [("temperature", "/1/request/temperature")]


def test_a_call_that_is_there_twice_is_one_step(tmp_path: Path) -> None:
    rows = talk_with_a_tool()
    one = written(put(tmp_path, [rows[0], *rows]), "atif")
    assert len(document(tmp_path, "atif")["steps"]) == 3
    assert [fault.rule for fault in one.faults] == ["capture.duplicate_record"]


def test_of_two_contents_of_one_call_the_one_that_says_more_counts(tmp_path: Path) -> None:
    rows = talk_with_a_tool()
    failed = {**rows[0], "status_code": 500, "response": None, "error_category": "upstream_error"}
    one = written(put(tmp_path, [failed, *rows]), "atif")
    assert len(document(tmp_path, "atif")["steps"]) == 3
    assert [fault.rule for fault in one.faults] == ["capture.conflicting_records"]


@pytest.mark.parametrize("to", ["gym", "responses", "chat", "messages", "sft", "atif", "jsonl", "eval"])
def test_the_words_of_a_conversation_are_in_every_contract_that_holds_words(tmp_path: Path, to: str) -> None:
    one = written(put(tmp_path, talk_with_a_tool()), to).written
    assert one is not None
    text = b"".join(one.documents).decode()
    assert "look_up" in text
    if to not in ("jsonl", "eval"):
        assert "What is a quern?" in text
        assert "a hand mill" in text
        assert "A hand mill." in text


def responses_call(call_id: str, asked: list[Row], output: list[Row], at: float, **request: Any) -> Row:
    return {
        "model_call_id": call_id,
        "dialect": "responses",
        "started_at": at,
        "completed_at": at + 0.5,
        "status_code": 200,
        "request": {"input": asked, **request},
        "response": {"id": f"resp-{call_id}", "output": output},
    }


def test_a_result_that_is_sent_alone_belongs_to_the_call_that_the_server_keeps(tmp_path: Path) -> None:
    calling = [{"type": "function_call", "id": "f1", "call_id": "k1", "name": "look_up", "arguments": "{}"}]
    told = [{"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "two"}]}]
    sent = [{"type": "function_call_output", "call_id": "k1", "output": "found"}]
    rows = [
        responses_call("a", [user("hi")], calling, 0.0),
        responses_call("b", sent, told, 1.0, previous_response_id="resp-a"),
    ]
    one = written(put(tmp_path, rows), "atif")
    assert steps(document(tmp_path, "atif")) == [
        ("user", "hi", [], []),
        ("agent", "", ["k1"], [("k1", "found")]),
        ("agent", "two", [], []),
    ]
    assert "output_unlinked" not in codes(one)


def test_a_result_of_a_call_that_nobody_knows_is_told(tmp_path: Path) -> None:
    sent = [user("hi"), {"type": "function_call_output", "call_id": "k9", "output": "found"}]
    told = [{"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "two"}]}]
    one = written(put(tmp_path, [responses_call("a", sent, told, 0.0)]), "atif")
    assert codes(one)["output_unlinked"] == 1


def test_where_words_were_changed_the_record_says_what_is_gone_on_with(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT)
    first = forge.root([1], [2], id="a")
    first.then([3], [4], id="b")
    forge.write(tmp_path, state=False, intents=False)
    rows = [
        chat_call("a", [system("S"), user("hi")], says("one")),
        chat_call("b", [system("S"), user("hi"), says("ONE, shortened"), user("on")], says("two"), at=1.0),
    ]
    one = written(put(tmp_path, rows), "atif")
    trajectory = document(tmp_path, "atif")
    assert "subagent_trajectories" not in trajectory
    # the answer as it was made, not as it was sent again, and what was said besides
    assert [step[1] for step in steps(trajectory)][:3] == ["S", "hi", "one"]
    assert [step[1] for step in steps(trajectory)][-2:] == ["on", "two"]
    assert "history_rewritten" not in codes(one)


def test_arguments_that_are_nested_deeply_are_compared_as_they_are_spelled(tmp_path: Path) -> None:
    deep = '{"a":' + "[" * 900 + "]" * 900 + "}"
    look = calls(("k1", "look_up", deep), text="")
    rows = [chat_call("a", [ASK], look), chat_call("b", [ASK, look, FOUND], says("done"), at=1.0)]
    assert len(document(put(tmp_path, rows), "eval")["steps"]) == 2
    assert document(tmp_path, "eval")["metrics"]["num_turns"] == 1


def test_a_fork_repeats_what_was_said_before_it(tmp_path: Path) -> None:
    begun = [user("hi"), says("one")]
    rows = [
        chat_call("a", [user("hi")], says("one")),
        chat_call("b", [*begun, user("left")], says("two"), at=1.0),
        chat_call("c", [*begun, user("right")], says("three"), at=1.1),
        chat_call("d", [*begun, user("left"), says("two"), user("on")], says("four"), at=2.0),
    ]
    one = written(put(tmp_path, rows), "atif")
    trajectory = document(tmp_path, "atif")
    (child,) = trajectory["subagent_trajectories"]
    assert [(step["message"], step.get("is_copied_context", False)) for step in child["steps"]] == [
        ("hi", True),
        ("one", True),
        ("right", False),
        ("three", False),
    ]
    assert codes(one)["copied_context"] == 1


ITEMS = {
    "chat": [says("t", tool_calls=[{"id": "k1", "type": "function", "function": {"name": "f", "arguments": "{}"}}])],
    "messages": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}], "encrypted_content": "hidden"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "t"}, {"type": "tool_use", "id": "k1", "name": "f", "input": {}}],
        },
        {"role": "assistant", "content": None},
    ],
    "responses": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "t"}]},
        {"type": "function_call", "call_id": "k1", "name": "f", "arguments": "{}"},
    ],
}


@pytest.mark.parametrize("dialect", ITEMS)
def test_records_hold_answers_as_each_dialect_spells_them(tmp_path: Path, dialect: str) -> None:
    forge = Forge(ROLLOUT)
    forge.root([1], [2], id="a", output_items=ITEMS[dialect], token_item_index=None)
    forge.write(tmp_path)
    trajectory = document(tmp_path, "atif")
    assert [(step[1], step[2]) for step in steps(trajectory)] == [("t", ["k1"])]
    assert trajectory["steps"][0].get("reasoning_content") == ("r" if dialect == "messages" else None)


@pytest.mark.parametrize("arguments", ["count the files", '"count the files"', '{"a":[{"b":"count the files"}]}'])
def test_a_task_is_found_wherever_it_stands_in_arguments(tmp_path: Path, arguments: str) -> None:
    task = calls(("k1", "task", arguments), text="")
    rows = [
        chat_call("a", [user("go")], task),
        chat_call("b", [system("You count."), user("count the files")], says("3"), at=1.0),
    ]
    one = written(put(tmp_path, rows), "atif")
    assert "subagent_parent_unknown" not in codes(one)


SHAPES = {
    "chat": ({"messages": [user("hi")]}, {"choices": [{"index": 0, "message": says("yes")}]}),
    "responses": (
        {"input": "hi"},
        {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}]},
    ),
    "messages": (
        {"max_tokens": 5, "messages": [user("hi")]},
        {"role": "assistant", "content": [{"type": "text", "text": "yes"}]},
    ),
}


@pytest.mark.parametrize("dialect", SHAPES)
@pytest.mark.parametrize("named", [None, "gemini"])
def test_a_dialect_that_is_not_named_is_told_by_shape(tmp_path: Path, dialect: str, named: str | None) -> None:
    request, response = SHAPES[dialect]
    row = {"model_call_id": "a", "status_code": 200, "request": request, "response": response}
    put(tmp_path, [row if named is None else {**row, "dialect": named}])
    assert [step[1] for step in steps(document(tmp_path, "atif"))] == ["hi", "yes"]
