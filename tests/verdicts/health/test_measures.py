"""What health counts of one rollout beside its verdict."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.records.raw_call import SAMPLING_PARAMETERS
from ng_capture.records.rollout_row import decode_row
from ng_capture.records.usage import UNKNOWN_USAGE, Usage
from ng_capture.verdicts.health.measures import (
    Measures,
    Place,
    RawMeasures,
    SamplingCount,
    first_attempt_of,
    place_of,
)
from tests.support.capture import Capture
from tests.support.forge import Files, Forge, Row, compressed, in_lines
from tests.support.rollout_health import health_of, health_of_forge
from tests.support.strategies import captures


def two_calls() -> Forge:
    forge = Forge()
    forge.root([1, 2], [3], id="a").then([4], [5, 6], id="b")
    return forge


def measured(files: Files, row: Row | None = None) -> Measures:
    found = health_of(files, row).measures
    assert found is not None
    return found


def raw_of(exchanges: Iterable[Row], forge: Forge | None = None) -> RawMeasures:
    """What is counted of these raw calls, beside the records of a healthy rollout."""
    found = health_of_forge(forge or two_calls(), exchanges).measures
    assert found is not None and found.raw is not None
    return found.raw


def exchange(call_id: str = "x", **values: Any) -> Row:
    return {"model_call_id": call_id, "dialect": "chat", **values}


# Where a rollout stands in its run


@pytest.mark.parametrize(
    ("rollout_id", "place"),
    [
        ("4-0", Place("4", "4", 0)),
        ("4-12", Place("4", "4", 0)),
        ("4-0-a2", Place("4", "4", 2)),
        ("4-0-a0", Place("4", "4", 0)),
        ("step7.4-0", Place("4", "step7.4", 0)),
        ("step7.4-0-a1", Place("4", "step7.4", 1)),
        ("step7.-0", Place("step7.", "step7.", 0)),
        ("swe-bench-17-3", Place("swe-bench-17", "swe-bench-17", 0)),
        ("maths_g3", Place("maths", "maths", 0)),
        ("maths_g3-a1", Place("maths", "maths", 1)),
        ("maths_g3-1", Place("maths_g3", "maths_g3", 0)),
        ("plain", Place(None, None, 0)),
        ("plain-a3", Place(None, None, 3)),
        ("-a3", Place(None, None, 3)),
        ("a-b", Place(None, None, 0)),
        ("", Place(None, None, 0)),
    ],
)
def test_a_rollout_id_spells_task_group_and_attempt(rollout_id: str, place: Place) -> None:
    assert place_of(rollout_id, None) == place


@pytest.mark.parametrize(
    ("rollout_id", "task", "place"),
    [
        ("4-0-a1", 9, Place("9", "4", 1)),
        ("step7.4-0", "four", Place("four", "step7.4", 0)),
        ("plain", "four", Place("four", "four", 0)),
        ("4-0", None, Place("4", "4", 0)),
    ],
)
def test_the_task_is_the_one_that_the_row_names(rollout_id: str, task: object, place: Place) -> None:
    row = decode_row(json.dumps({"_ng_rollout_id": rollout_id, "_ng_task_index": task}).encode())
    assert place_of(rollout_id, row) == place


@pytest.mark.parametrize("rollout_id", ["r-1\n", "a\nb-1", "\n", "4-0\n-a2", "4-0-a" + "9" * 30, "4-0-a" + "9" * 5000])
def test_an_id_that_no_writer_may_use_has_a_place_that_can_be_written(rollout_id: str) -> None:
    assert -(2**63) <= place_of(rollout_id, None).attempt < 2**63


@given(rollout_id=st.text())
def test_every_text_has_a_place(rollout_id: str) -> None:
    assert place_of(rollout_id, None).attempt >= 0


@given(task=st.from_regex(r"[a-z]{1,3}", fullmatch=True), index=st.integers(0, 99), attempt=st.integers(1, 99))
def test_the_attempts_of_a_rollout_are_one_task_and_group(task: str, index: int, attempt: int) -> None:
    first, again = place_of(f"{task}-{index}", None), place_of(f"{task}-{index}-a{attempt}", None)
    assert (first.task, first.group, again.attempt) == (again.task, again.group, attempt)
    assert first_attempt_of(f"{task}-{index}-a{attempt}") == first_attempt_of(f"{task}-{index}") == f"{task}-{index}"


# Calls with tokens


def test_the_lengths_are_those_of_whole_prompts_and_of_generations() -> None:
    for delta in (False, True):
        forge = Forge(delta=delta)
        forge.root([1, 2], [3]).then([4], []).then([5], [6, 7])
        found = measured(forge.files())
        assert sorted(found.prompt_lengths) == [2, 4, 5]
        assert sorted(found.generation_lengths) == [0, 1, 2]
        assert (found.calls, found.models) == (3, {"policy-8b": 3})


def test_a_prompt_that_cannot_be_put_together_has_no_length() -> None:
    forge = Forge(delta=True)
    forge.root([1], [2]).then([3], [4], parent_call_id="gone")
    assert measured(forge.files()).prompt_lengths == (1,)


@given(capture=captures("call whole end"))
@settings(max_examples=60, deadline=None)
def test_a_length_is_that_of_a_call_that_was_made(capture: Capture) -> None:
    found = measured(capture.files(), capture.row)
    assert len(found.prompt_lengths) <= len(found.generation_lengths) <= found.calls
    assert sum(found.models.values()) == found.calls
    assert (found.raw is None) == (capture.exchanges is None)
    if not capture.done:
        calls = capture.forge.calls
        assert sorted(found.prompt_lengths) == sorted(len(call.prompt) for call in calls)
        assert sorted(found.generation_lengths) == sorted(len(call.generation) for call in calls)


def test_a_record_and_its_raw_call_are_one_call_and_a_raw_call_alone_is_one_more() -> None:
    forge = two_calls()
    found = health_of_forge(forge, [*(call.raw() for call in forge.calls), exchange(status_code=500)]).measures
    assert found is not None and found.raw is not None
    assert (found.calls, found.raw.calls, found.models) == (3, 3, {"policy-8b": 2, "unknown": 1})


def test_a_record_without_a_model_is_of_an_unknown_one() -> None:
    forge = Forge()
    forge.root([1], [2], model="").then([3], [4], model="judge")
    assert measured(forge.files()).models == {"judge": 1, "unknown": 1}


@pytest.mark.parametrize(("values", "calls"), [([0.0], 1), ([0.0, -0.0], 1), ([0.0, -0.5], 0), ([], 0), ([-1.0], 0)])
def test_a_call_of_nothing_but_zeros_counts_however_short_it_is(values: list[float], calls: int) -> None:
    forge = Forge()
    forge.root([1], [2] * len(values), generation_log_probs=values)
    assert measured(forge.files()).zero_logprob_calls == calls


def test_a_line_that_repeats_a_call_is_counted_once_for_each_time() -> None:
    forge = two_calls()
    files = forge.files()
    files["r-1.tokens.jsonl"] += in_lines([forge.lines()[0]] * 2)
    assert measured(files).repeated_lines == 2


# Tools


OFFERED, EMPTY = [{"type": "function", "name": "f"}], list[Any]()


@pytest.mark.parametrize(
    ("requests", "row_tools", "tools"),
    [
        ([], None, None),
        ([{}], None, False),
        ([{"tools": OFFERED}, {}], None, True),
        ([None, {}], None, False),
        ([None], None, None),
        ([], OFFERED, True),
        ([], EMPTY, False),
        ([{}], OFFERED, True),
        ([{"tools": OFFERED}], EMPTY, True),
    ],
)
def test_tools_were_offered_by_some_request_or_by_the_row(
    requests: list[Row | None], row_tools: list[Any] | None, tools: bool | None
) -> None:
    forge = two_calls()
    exchanges = [exchange(str(number), status_code=500, request=asked) for number, asked in enumerate(requests)]
    asked = {} if row_tools is None else {"responses_create_params": {"tools": row_tools}}
    found = health_of_forge(forge, exchanges or None, forge.row() | asked).measures
    assert found is not None and found.tools is tools


def test_a_row_whose_request_is_no_object_says_nothing_of_tools() -> None:
    forge = two_calls()
    assert measured(forge.files(), forge.row(responses_create_params=[OFFERED])).tools is None


# Unfinished


def test_a_healthy_rollout_is_not_unfinished() -> None:
    assert not measured(two_calls().files()).unfinished


@pytest.mark.parametrize(
    ("name", "data"),
    [("tokens.intents", b"a\nb\nlost\n"), ("tokens.jsonl", two_calls().files()["r-1.tokens.jsonl"][:-9])],
)
@pytest.mark.parametrize(("state", "unfinished"), [({}, True), ({"frozen": True}, False), ({"retired": True}, False)])
def test_a_call_that_was_announced_or_begun_leaves_a_rollout_unfinished_until_it_is_closed(
    name: str, data: bytes, state: Row, unfinished: bool
) -> None:
    forge = two_calls()
    files = forge.files(state=False) | {f"r-1.{name}": data}
    assert measured(files).unfinished
    files["r-1.tokens.state.json"] = json.dumps(forge.state(**state)).encode()
    assert measured(files).unfinished is unfinished


@pytest.mark.parametrize(("damage", "unfinished"), [(b"?\n", False), (b"", True), (b"\xef\xbb\xbf", True)])
def test_behind_other_damage_an_announced_call_may_have_its_record(damage: bytes, unfinished: bool) -> None:
    files = two_calls().files() | {"r-1.tokens.intents": b"a\nb\nlost\n"}
    files["r-1.tokens.jsonl"] = damage + files["r-1.tokens.jsonl"]
    assert measured(files).unfinished is unfinished


def test_a_call_that_is_only_marked_was_never_announced() -> None:
    files = two_calls().files() | {"r-1.tokens.incomplete": b"gone\n"}
    assert not measured(files).unfinished


# Raw calls


def test_without_the_file_nothing_is_known_of_raw_calls_and_an_empty_one_holds_none() -> None:
    assert measured(two_calls().files()).raw is None
    found = raw_of([])
    assert (found.calls, found.usage, found.latencies, found.sampling) == (0, UNKNOWN_USAGE, (), ())


def test_one_call_on_two_lines_is_counted_once() -> None:
    forge = two_calls()
    lines = [call.raw() for call in forge.calls]
    once, twice = raw_of(lines, forge), raw_of([*lines, *lines], forge)
    assert twice == msgspec.structs.replace(once, repeated_lines=2)
    assert once.usage == Usage(2 + 4, 1 + 2, None, 3 + 6, None, None)


def test_of_two_lines_an_answer_stands_before_a_failure_and_then_the_one_that_counts_most() -> None:
    failure = exchange(status_code=500, response={"usage": {"input_tokens": 9, "output_tokens": 1}}, latency_ms=1)
    answer = exchange(status_code=200, response={"usage": {"output_tokens": 3}}, latency_ms=5)
    fuller = exchange(status_code=200, response={"usage": {"input_tokens": 7, "output_tokens": 2}}, latency_ms=9)
    for lines in ([failure, answer, fuller], [fuller, answer, failure], [answer, fuller, failure]):
        found = raw_of(lines)
        assert (found.latencies, found.error_categories, found.repeated_lines) == ((9.0,), {}, 2)


def test_a_log_with_a_line_for_each_block_counts_on_as_the_answer_grows() -> None:
    blocks = [exchange(response={"usage": {"input_tokens": 7, "output_tokens": tokens}}) for tokens in (1, 4, 2)]
    assert raw_of(blocks).usage == Usage(tokens_in=7, tokens_out=4, tokens_total=11)


ONE_LINE = st.fixed_dictionaries(
    {
        "model_call_id": st.sampled_from(["x", "x", "y"]),
        "status_code": st.sampled_from([200, 200, 429]),
        "latency_ms": st.sampled_from([None, 0, 1.5]),
        "request": st.sampled_from([None, {}, {"temperature": 1}, {"tools": OFFERED}]),
        "response": st.sampled_from([{}, {"model": "m"}, {"stop_reason": "length"}, {"usage": {"output_tokens": 1}}]),
    },
    optional={
        "error_category": st.sampled_from(["timeout", "incomplete"]),
        "latency_ttft_ms": st.sampled_from([0, 2]),
    },
)


@settings(max_examples=80, deadline=None)
@given(exchanges=st.lists(ONE_LINE, min_size=2, max_size=3), data=st.data())
def test_the_order_of_the_lines_decides_nothing(exchanges: list[Row], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(exchanges))
    one, other = (health_of_forge(Forge(), lines).measures for lines in (exchanges, shuffled))
    assert one == other


def test_sums_hold_what_is_known_and_say_of_how_many_calls_it_is_not() -> None:
    found = raw_of(
        [
            exchange("x", response={"usage": {"input_tokens": 5, "output_tokens": 2}}, latency_ms=12.5),
            exchange("y", response={"usage": {"output_tokens": 3}}, latency_ttft_ms=0),
            exchange("z", status_code=429, response=None, latency_ms=0),
        ]
    )
    assert (found.usage.tokens_in, found.usage.tokens_out, found.usage.cached_tokens) == (5, 5, None)
    assert found.calls_with_partial_usage == 1
    assert (found.latencies, found.ttfts) == ((12.5, 0.0), (0.0,))


def test_failures_are_counted_by_category() -> None:
    statuses = {"a1": 429, "b1": 429, "c1": 503, "d1": 200}
    failed = [exchange(name, status_code=status) for name, status in statuses.items()]
    assert raw_of([*failed, exchange("e1", error_category="cancelled")]).error_categories == {
        "cancelled": 1,
        "rate_limit": 2,
        "upstream_error": 1,
    }


def test_calls_that_stopped_at_their_limit_are_counted_whatever_the_dialect_calls_it() -> None:
    ends = ["length", "max_tokens", "max_output_tokens", "stop"]
    answers = [exchange(str(number), response={"stop_reason": end}) for number, end in enumerate(ends)]
    assert raw_of(answers).length_stopped_calls == 3


def with_raw_text(text: bytes, name: str = "capture.jsonl") -> RawMeasures:
    found = measured(two_calls().files() | {f"r-1.{name}": text}).raw
    assert found is not None
    return found


GOOD = b'{"model_call_id": "x", "status_code": 500}\n'


@pytest.mark.parametrize(
    ("text", "damaged", "calls"),
    [
        (GOOD, 0, 1),
        (b"\xef\xbb\xbf" + GOOD, 0, 1),
        (GOOD + b"\n  \n", 0, 1),
        (GOOD + b'{"model_call_id": \n' + GOOD.replace(b"x", b"y"), 1, 2),
        (GOOD + b"[]\n7\n", 2, 1),
        (GOOD + b"\0\0\0\n", 1, 1),
        (GOOD + GOOD[:9], 1, 1),
        (GOOD[:-1], 0, 1),
    ],
)
def test_only_lines_that_cannot_be_read_are_damaged(text: bytes, damaged: int, calls: int) -> None:
    found = with_raw_text(text)
    assert (found.damaged_lines, found.calls) == (damaged, calls)


def test_damage_of_the_records_is_not_that_of_the_raw_calls() -> None:
    files = two_calls().files() | {"r-1.capture.jsonl": GOOD}
    files["r-1.tokens.jsonl"] += b"?\n"
    assert getattr(measured(files).raw, "damaged_lines", None) == 0


def test_damage_counts_in_every_file_of_raw_calls() -> None:
    files = two_calls().files() | {
        "r-1.capture.jsonl": b"?\n" + GOOD,
        "r-1.capture.jsonl.gz": compressed(b"?\n?\n" + GOOD, ".gz"),
    }
    found = measured(files).raw
    assert found is not None and (found.damaged_lines, found.calls, found.repeated_lines) == (3, 1, 1)


def test_a_line_that_names_no_call_is_counted_and_nothing_else_of_it() -> None:
    found = with_raw_text(b'{"status_code": 500}\n{"model_call_id": ""}\n')
    assert found == msgspec.structs.replace(raw_of([]), unidentified_lines=2)


# Sampling


def test_requests_are_counted_by_model_parameter_and_value() -> None:
    asked = [{"temperature": 1}, {"temperature": 1.0}, {"temperature": 0.5, "seed": 7}, {}]
    answers = [
        exchange(str(number), request=request, response={"model": "m"} if number else {"model": "n"})
        for number, request in enumerate(asked)
    ]
    told = {(each.model, each.parameter, each.value): each.calls for each in raw_of(answers).sampling}
    assert {key: calls for key, calls in told.items() if key[1] in ("temperature", "seed")} == {
        ("m", "seed", None): 2,
        ("m", "seed", "7"): 1,
        ("m", "temperature", None): 1,
        ("m", "temperature", "0.5"): 1,
        ("m", "temperature", "1"): 1,
        ("n", "seed", None): 1,
        ("n", "temperature", "1"): 1,
    }


def test_every_request_says_something_of_every_parameter() -> None:
    (unset,) = {(each.model, each.value, each.calls) for each in raw_of([exchange(request={})]).sampling}
    assert unset == ("unknown", None, 1)
    assert [each.parameter for each in raw_of([exchange(request={})]).sampling] == sorted(SAMPLING_PARAMETERS)


def test_a_request_that_is_not_known_asked_for_nothing_that_is_known() -> None:
    known = exchange("x", request={"seed": 1}, response={"model": "m"})
    unknown = exchange("y", request=None, response={"model": "m"})
    assert SamplingCount("m", "seed", "1", 1) in raw_of([known, unknown]).sampling
    assert raw_of([known, unknown]).sampling == raw_of([known]).sampling
