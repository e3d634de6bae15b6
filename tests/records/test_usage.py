"""What a call used, against NeMo Gym's own answers (capture-files.md 7.3, contracts/oracle)."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.records.raw_call import RawCall, decode_raw_call
from ng_capture.records.usage import UNKNOWN_USAGE, Usage, count, decode_usage, total_usage
from tests.support.corpus import corpus_file, corpus_root, ids_in, json_lines

ORACLE = corpus_root() / "contracts" / "oracle"
STATS_FILE, RECORDS_FILE = ORACLE / "token_stats.jsonl", ORACLE / "model_call_record.jsonl"
STATS = {case["case"]: case for case in json_lines(STATS_FILE)}
ALL_RECORDS = {case["case"]: case for case in json_lines(RECORDS_FILE)}
RECORDS = {name: case for name, case in ALL_RECORDS.items() if case["converter"] == "model_call_record"}
SUMS = {name: case for name, case in ALL_RECORDS.items() if name not in RECORDS}
FIELDS = Usage.__struct_fields__


def raw_call(case: dict[str, Any]) -> RawCall:
    call = decode_raw_call(json.dumps(case["input"]).encode(), 1, 0)
    assert call is not None
    return call


@pytest.mark.parametrize("name", ids_in(STATS_FILE, STATS))
def test_usage_is_read_as_gym_reads_it(name: str) -> None:
    gym = STATS[name]["output"]
    expected = gym["stats"] | {"cached_tokens": gym["cache_signal"][1]}
    assert msgspec.structs.asdict(decode_usage(STATS[name]["input"])) == expected


@pytest.mark.parametrize("name", ids_in(RECORDS_FILE, RECORDS))
def test_a_raw_call_says_what_gyms_record_of_it_says(name: str) -> None:
    gym, call = RECORDS[name]["output"], raw_call(RECORDS[name])
    assert msgspec.structs.asdict(call.usage) == {field: gym.get(field) for field in FIELDS}
    told = (call.model, call.status_code, call.category, call.finish_reason, call.latency_ms, call.latency_ttft_ms)
    fields = ("model", "status_code", "error_category", "finish_reason", "latency_total_ms", "latency_ttft_ms")
    assert told == tuple(map(gym.get, fields))


@pytest.mark.parametrize("name", ids_in(RECORDS_FILE, SUMS))
def test_sums_over_calls_are_gyms(name: str) -> None:
    calls = [raw_call(RECORDS[each]) for each in SUMS[name]["input"]]
    gym = SUMS[name]["output"]
    ours = msgspec.structs.asdict(total_usage(call.usage for call in calls)) | {
        "latency_total_ms": sum(call.latency_ms or 0 for call in calls),
        "num_calls": len(calls),
    }
    assert {field: ours[field] for field in gym} == gym


def test_the_oracle_holds_cases_of_every_kind() -> None:
    corpus_file(RECORDS_FILE)
    assert len(STATS) == 5 and len(RECORDS) == 8 and len(SUMS) == 1


# The one difference: where NeMo Gym counts cached tokens twice


CACHED = {"cache_read_input_tokens": 90, "cache_creation_input_tokens": 7}


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 102},
        {"prompt_tokens": 102, "prompt_tokens_details": {"cached_tokens": 90}},
        {"input_tokens": 102, "prompt_tokens": 102},
        {"input_tokens": 102, "input_tokens_details": {"cached_tokens": 90}},
        {"input_tokens": 5},
        {"input_tokens": 5, "prompt_tokens_details": {}},
        {"input_tokens": 5, "prompt_tokens": None},
        {"input_tokens": 5, "prompt_tokens": 102},
        {"prompt_tokens": 5},
        {"input_tokens": 102, "total_tokens": 105},
        {"prompt_tokens": 102, "total_tokens": 105},
        {"input_tokens": 5, "total_tokens": 105},
        {"input_tokens": 5, "prompt_tokens": 5, "total_tokens": 105},
        {"input_tokens": 5, "prompt_tokens_details": {"cached_tokens": 90}},
    ],
)
def test_a_cached_token_is_never_counted_twice_and_never_left_out(usage: dict[str, Any]) -> None:
    """NeMo Gym adds the cache keys to what holds them already, too: it says 199 of the first four."""
    told = decode_usage(usage | CACHED | {"output_tokens": 3})
    assert (told.tokens_in, told.tokens_total) == (102, 105)
    assert (told.cached_tokens, told.cache_creation_tokens) == (90, 7)


@pytest.mark.parametrize(
    ("usage", "tokens_in"),
    [
        ({"prompt_tokens": 97}, 97),
        ({"input_tokens": 97, "input_tokens_details": {"cached_tokens": 90}}, 97),
        ({"input_tokens": 97}, 194),
        ({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}}, 197),
        ({"prompt_tokens": 100, "total_tokens": 200}, 197),
        ({"input_tokens": 100, "total_tokens": 103}, 100),
        ({"input_tokens": 5, "total_tokens": 9}, 102),
        ({}, None),
    ],
)
def test_the_total_or_else_the_size_tells_whether_the_cached_tokens_are_in_it(
    usage: dict[str, Any], tokens_in: int | None
) -> None:
    assert decode_usage(usage | CACHED | {"output_tokens": 3}).tokens_in == tokens_in


values = st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from([2.0, "3", [4], 2**63 - 1, 2**63])
details = values | st.dictionaries(
    st.sampled_from(["cached_tokens", "cached_input_tokens", "reasoning_tokens"]), values, max_size=2
)
usages = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(
            ["input_tokens", "prompt_tokens", "output_tokens", "completion_tokens", "total_tokens"], values
        ),
        **dict.fromkeys(["cache_read_input_tokens", "cache_creation_input_tokens", "cached_input_tokens"], values),
        "reasoning_output_tokens": values,
        **dict.fromkeys(["input_tokens_details", "prompt_tokens_details"], details),
        **dict.fromkeys(["output_tokens_details", "completion_tokens_details"], details),
    },
)


def whole(value: object) -> int | None:
    """Only real integers that are not negative count; above 64 bits nothing does."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def details_of(usage: dict[str, Any], side: str) -> dict[str, Any]:
    """What a server says about the prompt (`in`) or the answer (`out`): the first object of the two dialects'."""
    names = {"in": ("input", "prompt"), "out": ("output", "completion")}[side]
    found = (usage.get(f"{name}_tokens_details") for name in names)
    return next((value for value in found if isinstance(value, dict)), {})


def first(usage: dict[str, Any], *places: str) -> int | None:
    """The first count among these keys; `in.key` and `out.key` are those of the details."""
    for place in places:
        side, _, key = place.rpartition(".")
        if (told := whole((details_of(usage, side) if side else usage).get(key))) is not None:
            return told
    return None


@given(usage=usages)
def test_whatever_a_server_says_is_read_by_the_rules_of_7_3(usage: dict[str, Any]) -> None:
    told = decode_usage(usage)
    assert told.tokens_out == first(usage, "output_tokens", "completion_tokens")
    assert told.tokens_reasoning == first(usage, "out.reasoning_tokens", "reasoning_output_tokens")
    cached = ("in.cached_tokens", "in.cached_input_tokens", "cache_read_input_tokens", "cached_input_tokens")
    assert told.cached_tokens == first(usage, *cached)
    assert told.cache_creation_tokens == first(usage, "cache_creation_input_tokens")
    both = None if told.partial else (told.tokens_in or 0) + (told.tokens_out or 0)
    reported = first(usage, "total_tokens")
    assert told.tokens_total == (both if reported is None else reported)


@given(usage=usages)
def test_the_prompt_is_gyms_sum_or_what_was_reported_and_holds_the_cached_tokens(usage: dict[str, Any]) -> None:
    told, reported = decode_usage(usage).tokens_in, first(usage, "input_tokens", "prompt_tokens")
    if reported is None:
        assert told is None
        return
    beside = sum(first(usage, f"cache_{kind}_input_tokens") or 0 for kind in ("read", "creation"))
    assert told in (first(usage, "input_tokens"), first(usage, "prompt_tokens"), reported + beside)
    assert told >= beside
    undisputed = all(first(usage, place) is None for place in ("prompt_tokens", "total_tokens"))
    if undisputed and not details_of(usage, "in"):
        assert told == reported + beside


@given(calls=st.lists(usages, max_size=4))
def test_sums_are_over_what_is_known_and_null_over_nothing(calls: list[dict[str, Any]]) -> None:
    read = list(map(decode_usage, calls))
    for field, total in msgspec.structs.asdict(total_usage(read)).items() if read else ():
        known = [value for usage in read if (value := getattr(usage, field)) is not None]
        assert total == (sum(known) if known else None)


def test_the_sum_over_no_call_is_unknown() -> None:
    assert total_usage([]) == UNKNOWN_USAGE


def test_usage_is_partial_where_prompt_or_answer_was_not_counted() -> None:
    assert UNKNOWN_USAGE.partial and Usage(tokens_in=1).partial and Usage(tokens_out=1).partial
    assert not Usage(tokens_in=0, tokens_out=0).partial


@given(value=values)
def test_a_count_is_a_plain_integer_of_64_bits(value: object) -> None:
    assert count(value) == whole(value)
