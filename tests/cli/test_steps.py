"""`ng-capture steps` and `rebuild --attach-calls` as a user runs them."""

import json
from pathlib import Path

import pytest

from ng_capture.outputs.shapes import SHAPES
from tests.support.command import Run, run, strict_json
from tests.support.forge import Row, write_rows
from tests.support.loading import loaded_by
from tests.support.raw_calls import calls, chat_call, result, says, system, user, write_capture
from tests.support.runs import broken, healthy, words_of, write_lost
from tests.support.terminal_text import ALL_HOSTILE, acting

SLOW = {"polars", "pyarrow", "transformers", "numpy", "tokenizers", "pydantic", "prometheus_client", "pygments"}


def used(row: Row, read: int, cached: int | None, written: int) -> Row:
    """The same call with what it used."""
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    usage = {"prompt_tokens": read, "completion_tokens": written, **details}
    return {**row, "response": {**row["response"], "usage": usage}}


def conversation() -> list[Row]:
    """Three calls: a tool is called, the server refuses, the tool's result is answered."""
    asked = [system("Be brief."), user("What is a quern?")]
    calling = calls(("k1", "look_up", '{"word": "quern"}'), reasoning_content="I should.")
    then = [*asked, calling, result("k1", "a hand mill")]
    return [
        used(chat_call("1111aaaa", asked, calling, finish="tool_calls", latency_ms=342.4), 20, None, 9),
        chat_call("2222aaaa", then, None, status_code=429, latency_ms=3.0),
        used(chat_call("3333aaaa", then, says("A hand mill."), latency_ms=2816.0, latency_ttft_ms=50.0), 40, 16, 5),
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`10-0` and `2-0` have raw calls, `3-0` has tokens only."""
    directory = tmp_path_factory.mktemp("steps") / "store"
    write_capture(directory, "2-0", conversation())
    healthy("10-0").write(directory, raw=True)
    broken("3-0").write(directory)
    return directory


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """One call, a damaged line, and a mark that a call could not be written."""
    write_capture(tmp_path, "2-0", conversation()[:1])
    with (tmp_path / "2-0.capture.jsonl").open("ab") as file:
        file.write(b"{not json}\n")
    (tmp_path / "2-0.capture.incomplete").touch()
    return tmp_path


# The tables


def test_rollouts_with_raw_calls_are_listed_with_their_totals(store: Path) -> None:
    done = run("steps", store)
    assert done.code == 0
    assert words_of(done.out) == [
        "rollout calls failed turns tools in cached out time",
        "2-0 3 1 1 1 60 16 14 3.2 s rate_limit 1",
        "10-0 2 0 2 0 6 - 2 1.0 s",
    ]
    assert done.err == ("2 of 3 rollouts: 5 calls, 66 tokens in (16 cached), 16 out.\n1 failed; errors: rate_limit 1\n")


def test_the_steps_of_one_rollout_are_listed(store: Path) -> None:
    done = run("steps", store, "2-0")
    assert done.code == 0
    assert words_of(done.out) == [
        "2-0 3 calls 60 tokens in (16 cached) 14 out 3.2 s policy-8b chat",
        "# call turn in cached out time first stop what",
        "0 1111aa 0 20 - 9 342 ms - tool_calls look_up",
        "1 2222aa 0 - - - 3 ms - - [rate_limit 429]",
        "2 3333aa 0 40 16 5 2.8 s 50 ms stop",
    ]
    assert done.err == "1 failed; errors: rate_limit 1\n"


def test_a_file_of_one_rollout_will_do(store: Path) -> None:
    assert words_of(run("steps", store / "2-0.capture.jsonl").out)[1:] == ["2-0 3 1 1 1 60 16 14 3.2 s rate_limit 1"]


def test_a_call_of_which_only_the_total_is_known_says_so(tmp_path: Path) -> None:
    row = chat_call("a", [user("hello")], says("hi"))
    write_capture(tmp_path, "2-0", [{**row, "response": {**row["response"], "usage": {"total_tokens": 94}}}])
    done = run("steps", tmp_path, "2-0")
    assert words_of(done.out)[0] == "2-0 1 call 94 tokens in all policy-8b chat"


def test_no_line_is_wider_than_the_terminal(tmp_path: Path) -> None:
    many = calls(*((f"k{n}", f"tool_with_a_long_name_{n}", "{}") for n in range(9)))
    write_capture(tmp_path, "2-0", [chat_call("a" * 32, [user("hello")], many)])
    for words in ((), ("2-0",)):
        lines = run("steps", tmp_path, *words, COLUMNS="100").out.splitlines()
        assert max(map(len, lines)) <= 100, lines


def test_what_stands_in_a_capture_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    tool = calls(("k1", ALL_HOSTILE, "{}"))
    row = chat_call(ALL_HOSTILE, [user("hello")], tool, finish=ALL_HOSTILE, error_category=ALL_HOSTILE)
    write_capture(tmp_path, "2-0", [{**row, "dialect": ALL_HOSTILE, "local_response_reason": ALL_HOSTILE}])
    for words in ((), ("2-0",)):
        done = run("steps", tmp_path, *words)
        assert not acting(done.out) and not acting(done.err)


def test_errors_are_red_where_colors_are_wanted(store: Path) -> None:
    assert "\x1b[1;31m[rate_limit 429]\x1b[0m" in run("steps", store, "2-0", "--color", "always").out
    assert "\x1b" not in run("steps", store, "2-0").out


# JSON


def test_one_object_a_rollout_is_printed(store: Path) -> None:
    done = run("steps", store, "-f", "jsonl")
    assert [row["rollout_id"] for row in done.rows] == ["2-0", "3-0", "10-0"]
    for row in done.rows:
        SHAPES["rollout-steps"].model_validate(row)
    assert [step["model_call_id"] for step in done.rows[0]["steps"]] == ["1111aaaa", "2222aaaa", "3333aaaa"]
    assert done.rows[1]["gaps"] == [{"code": "model_call_capture_no_records"}]


def test_the_document_ends_with_the_sums(store: Path) -> None:
    document = strict_json(run("steps", store, "--json").out)
    SHAPES["steps-document"].model_validate(document)
    assert document["rollouts"] == run("steps", store, "-f", "jsonl").rows
    assert (document["summary"]["num_calls"], document["summary"]["tokens_in"]) == (5, 66)
    assert document["summary"]["cached_tokens"] == 16


def test_requests_and_responses_are_printed_where_they_are_asked_for(store: Path) -> None:
    (told,) = run("steps", store, "2-0", "-f", "jsonl", "--payloads").rows
    SHAPES["rollout-steps"].model_validate(told)
    row = conversation()[0]
    assert (told["steps"][0]["request"], told["steps"][0]["response"]) == (row["request"], row["response"])
    assert "request" not in run("steps", store, "2-0", "-f", "jsonl").rows[0]["steps"][0]


def test_turns_are_counted_by_the_rule_that_is_asked_for(tmp_path: Path) -> None:
    write_capture(tmp_path, "2-0", [chat_call(name, [user(name)], says("hi")) for name in "ab"])

    def turns(*rule: str) -> list[int | None]:
        return [step["turn_index"] for step in run("steps", tmp_path, "-f", "jsonl", *rule).rows[0]["steps"]]

    assert (turns(), turns("--turn-rule", "preview")) == ([0, 0], [None, None])


@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_jobs_change_no_byte(store: Path, form: str) -> None:
    assert run("steps", store, "-f", form, "--jobs", "2") == run("steps", store, "-f", form)


def test_the_output_can_go_to_a_file(store: Path, tmp_path: Path) -> None:
    done = run("steps", store, "-f", "jsonl", "-o", tmp_path / "steps.jsonl")
    assert (done.code, done.out) == (0, "")
    assert (tmp_path / "steps.jsonl").read_text() == run("steps", store, "-f", "jsonl").out
    refused = run("steps", store, "-o", store / "2-0.capture.jsonl")
    assert refused.code == 2 and "would replace a capture that is read" in refused.err


# What is wrong


def test_a_damaged_line_is_named_and_the_rest_is_shown(damaged: Path) -> None:
    done = run("steps", damaged)
    assert done.code == 1
    assert words_of(done.out)[1] == "2-0 1 0 1 1 20 - 9 342 ms 1 damaged line, incomplete"
    assert done.err.splitlines() == [
        "2-0.capture.jsonl:2: damaged_line: not exactly one JSON object",
        "2-0.capture.incomplete: capture_incomplete: marked incomplete: a raw call could not be written",
        "1 rollout: 1 call, 20 tokens in, 9 out.",
        "1 line could not be read: the sums are too small",
    ]
    assert len(run("steps", damaged, "-q").err.splitlines()) == 2


def test_a_call_on_two_lines_is_counted_once(tmp_path: Path) -> None:
    write_capture(tmp_path, "2-0", [*conversation(), *conversation()])
    done = run("steps", tmp_path)
    assert words_of(done.out)[1] == "2-0 3 1 1 1 60 16 14 3.2 s rate_limit 1"
    assert "3 repeated lines, each call counted once" in done.err and done.code == 0


def test_without_a_raw_call_the_user_is_told_where_they_come_from(tmp_path: Path) -> None:
    broken("3-0").write(tmp_path)
    done = run("steps", tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "no raw call in 1 rollout\nhint: " in done.err and "observability_enabled" in done.err


def test_an_empty_directory_is_told(tmp_path: Path) -> None:
    done = run("steps", tmp_path)
    assert (done.code, done.out, done.err) == (1, "", "no rollout found\n")


def test_a_rollout_that_cannot_be_read_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    write_capture(tmp_path, "2-0", conversation())
    (tmp_path / "3-0.capture.jsonl").mkdir()
    done = run("steps", tmp_path)
    assert done.code == 3 and "3-0.capture.jsonl: cannot be read" in done.err
    assert words_of(done.out)[1].startswith("2-0 3 ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no path given"),
        (("nowhere",), "no such file or directory"),
        ((".", "none-0"), "no rollout none-0"),
        ((".", "--payloads"), "--payloads: a table holds no requests"),
    ],
)
def test_wrong_use_is_told(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = run("steps", *words, cwd=tmp_path)
    assert done.code == 2 and message in done.err


def test_nothing_is_written_and_nothing_slow_is_loaded(store: Path) -> None:
    before = {path: path.read_bytes() for path in store.iterdir()}
    assert not loaded_by("steps", store, "2-0") & SLOW
    assert {path: path.read_bytes() for path in store.iterdir()} == before


# rebuild --attach-calls


def rebuilt(directory: Path, *words: object) -> Run:
    return run("rebuild", *words, "-o", directory / "out.jsonl", "-q")


def rows_of(directory: Path) -> list[Row]:
    return [strict_json(line) for line in (directory / "out.jsonl").read_bytes().splitlines()]


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """Finished rows of a rollout, of a masked one, of one without a capture, of one with tokens; and of nobody."""
    forges = [healthy("2-0"), broken("3-0"), healthy("4-0"), healthy("5-0")]
    for forge in (*forges[:2], forges[3]):
        forge.write(tmp_path / "store", raw=True)
    write_lost(tmp_path / "store", "6-0")
    tokens = {"generation_token_ids": [1], "type": "message"}
    rows = [forge.row(forge.calls[-1]) for forge in forges]
    rows[3]["response"]["output"] = [tokens]
    write_rows(tmp_path / "rows.jsonl", [*rows, {"reward": 1.0}])
    return tmp_path


def test_every_row_that_names_a_rollout_gets_its_calls(finished: Path) -> None:
    rebuilt(finished, finished / "store", "--rollouts", finished / "rows.jsonl", "--attach-calls")
    rows = rows_of(finished)
    told = [row.get("ng_model_call_capture") for row in rows]
    assert [each and (each["rollout_id"], each["metrics"]["num_calls"]) for each in told] == [
        ("2-0", 2),
        ("3-0", 2),
        ("4-0", 0),
        ("5-0", 2),
        None,
    ]
    for each in filter(None, told):
        SHAPES["attached-calls"].model_validate(each)
    assert told[2] is not None and told[2]["gaps"] == [{"code": "model_call_capture_no_records"}]


@pytest.mark.parametrize("policy", ["terminal", "all"])
def test_nothing_else_of_a_row_changes(finished: Path, policy: str) -> None:
    words = (finished / "store", "--rollouts", finished / "rows.jsonl", "--policy", policy)
    rebuilt(finished, *words)
    without = rows_of(finished)
    rebuilt(finished, *words, "--attach-calls")
    rows = rows_of(finished)
    assert all("ng_model_call_capture" in row for row in rows[:-1])
    assert [{key: row[key] for key in row if key != "ng_model_call_capture"} for row in rows] == without


def test_other_values_keep_their_bytes(finished: Path) -> None:
    spelled = b'{"_ng_rollout_id":"2-0","x":1.50e+1,"big":123456789012345678901234567890,"u":"\\u00e9"}\n'
    (finished / "rows.jsonl").write_bytes(spelled)
    rebuilt(finished, finished / "store", "--rollouts", finished / "rows.jsonl", "--attach-calls")
    out = (finished / "out.jsonl").read_bytes()
    assert out.startswith(spelled[:-2] + b',"ng_model_call_capture":{"rollout_id":"2-0"')


def test_calls_that_a_row_carries_already_are_replaced(finished: Path) -> None:
    write_rows(finished / "rows.jsonl", [{"_ng_rollout_id": "2-0", "ng_model_call_capture": {"calls": []}, "z": 1}])
    rebuilt(finished, finished / "store", "--rollouts", finished / "rows.jsonl", "--attach-calls")
    (row,) = rows_of(finished)
    assert list(row)[:3] == ["_ng_rollout_id", "ng_model_call_capture", "z"]
    assert row["ng_model_call_capture"]["metrics"]["num_calls"] == 2


def test_rollouts_without_finished_rows_get_their_calls_too(finished: Path) -> None:
    rebuilt(finished, finished / "store", "--attach-calls")
    assert [row["ng_model_call_capture"]["metrics"]["num_calls"] for row in rows_of(finished)] == [2, 2, 2, 0]


def test_attaching_is_the_same_with_several_processes(finished: Path) -> None:
    words = (finished / "store", "--rollouts", finished / "rows.jsonl", "--attach-calls")
    rebuilt(finished, *words)
    alone = (finished / "out.jsonl").read_bytes(), (finished / "out.jsonl.receipt.json").read_bytes()
    rebuilt(finished, *words, "--jobs", "2")
    assert alone == ((finished / "out.jsonl").read_bytes(), (finished / "out.jsonl.receipt.json").read_bytes())


def test_the_receipt_says_that_calls_are_attached_and_is_else_as_it_was(finished: Path) -> None:
    receipts = []
    for words in ((), ("--attach-calls",)):
        rebuilt(finished, finished / "store", *words)
        receipts.append(json.loads((finished / "out.jsonl.receipt.json").read_bytes()))
        SHAPES["receipt"].model_validate(receipts[-1])
    without, attached = receipts
    assert "attach_calls" not in without["options"] and attached["options"].pop("attach_calls") is True
    assert (attached["options"], attached["rollouts"]) == (without["options"], without["rollouts"])


def test_training_rows_hold_no_calls(finished: Path) -> None:
    done = rebuilt(finished, finished / "store", "--to", "rows", "--attach-calls")
    assert done.code == 2 and "--attach-calls: training rows hold no calls\nhint: ng-capture steps" in done.err
    assert not (finished / "out.jsonl").exists()


def test_what_cannot_be_read_is_a_gap_of_its_row(finished: Path) -> None:
    (finished / "store" / "2-0.capture.jsonl").unlink()
    (finished / "store" / "2-0.capture.jsonl").mkdir()
    done = rebuilt(finished, finished / "store", "--rollouts", finished / "rows.jsonl", "--attach-calls")
    assert done.code == 3
    row = rows_of(finished)[0]
    assert row["mask_sample"] is True
    assert row["ng_model_call_capture"]["gaps"] == [{"code": "model_call_capture_unreadable"}]
