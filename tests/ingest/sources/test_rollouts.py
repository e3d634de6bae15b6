"""The strongest claim says which rollout a call is of; claims that ought to agree and do not are refused."""

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.files.names import is_rollout_id
from ng_capture.ingest.raw import RolloutClaim
from ng_capture.ingest.sources.rollouts import (
    cookbook_claims,
    field_claims,
    file_name_claims,
    header_claims,
    of_attempt,
    path_claims,
    resolve_rollout,
)
from ng_capture.records.defects import Defect
from tests.support.logs import ONE_CALL, exchanges, readings

SOURCES = ("path", "file_name", "field", "header", "option")


def claims(**told: str) -> list[RolloutClaim]:
    return [RolloutClaim(source, rollout_id) for source, rollout_id in told.items()]


def refused(answer: str | Defect) -> str:
    assert isinstance(answer, Defect)
    return answer.reason


@pytest.mark.parametrize("first", range(5))
def test_the_strongest_of_the_claims_that_are_there_counts_in_whatever_order_they_come(first: int) -> None:
    agreeing = dict.fromkeys(SOURCES[first:3], "a")
    weaker = {source: source for source in SOURCES[max(first, 3) :]}
    told = claims(**agreeing, **weaker)
    expected = "a" if first < 3 else SOURCES[first]
    assert {resolve_rollout(order) for order in permutations(told)} == {expected}


@pytest.mark.parametrize("pair", [("path", "file_name"), ("path", "field"), ("file_name", "field"), ("field", "field")])
def test_path_file_name_and_field_must_agree(pair: tuple[str, str]) -> None:
    told = [RolloutClaim(pair[0], "a"), RolloutClaim(pair[1], "b")]
    answer = resolve_rollout(told)
    assert refused(answer) == "rollout_id_mismatch"
    assert isinstance(answer, Defect)
    assert (answer.expected, answer.found) == ("a", "b")


def test_the_command_may_say_which_of_two_answers_is_right_and_no_third() -> None:
    assert resolve_rollout(claims(path="a", field="b", option="b")) == "b"
    assert refused(resolve_rollout(claims(path="a", field="b", option="c"))) == "rollout_id_mismatch"


def test_another_attempt_is_another_rollout() -> None:
    assert refused(resolve_rollout(claims(file_name="t1-0-a1", field="t1-0"))) == "rollout_id_mismatch"


@pytest.mark.parametrize("bad", ["a%20b", "../x", "", "-a", ".", "a b", "a\n", "é"])
def test_an_id_that_must_not_become_a_file_name_is_refused(bad: str) -> None:
    assert refused(resolve_rollout(claims(header=bad))) == "bad_rollout_id"


def test_no_claim_is_no_rollout() -> None:
    assert refused(resolve_rollout([])) == "bad_rollout_id"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h/ng-rollout/t1-0/v1/chat/completions", "t1-0"),
        ("/ng-rollout/t1-0-a2/training-token-capture/v1/responses?x=1", "t1-0-a2"),
        ("https://h:1/base/ng-rollout/step1.2-3/v1/messages", "step1.2-3"),
        ("/rollout/ro-1/attempt/at-2/v1/chat/completions", "ro-1.at-2"),
        ("/rollout/ro-1/attempt/0/v1/chat/completions", "ro-1"),
        ("/rollout/ro-1/attempt/2/v1/chat/completions", "ro-1-a2"),
        ("/sessions/s1/v1/chat/completions", "s1"),
        ("/r/run/sweep-3/iter/12/traj/0/v1/messages", "sweep-3.iter12.traj0"),
        (
            "/r/run/r/attempt/1/split/train/iter/2/group/3/traj/4/purpose/x/v1/messages",
            "r.attempt1.train.iter2.group3.traj4",
        ),
        ("/ng-rollout/a%2Fb/v1/responses", "a%2Fb"),
    ],
)
def test_the_path_of_a_url_names_the_rollout_undecoded(url: str, expected: str) -> None:
    assert path_claims(url) == [RolloutClaim("path", expected)]


@pytest.mark.parametrize(
    "url", ["", "http://h/v1/chat/completions", "http://[::1/v1", "/ng-rollout//v1/x", "/r/run/v1/x"]
)
def test_a_path_without_a_prefix_names_none(url: str) -> None:
    assert path_claims(url) == []


def test_a_scope_of_the_cookbook_names_the_rollout_that_its_path_would() -> None:
    scope = {"run_id": "r", "run_attempt": 0, "iteration": 12, "group_idx": 3, "traj_idx": 4}
    (claim,) = cookbook_claims(scope)
    assert claim.rollout_id == path_claims("/r/run/r/attempt/0/iter/12/group/3/traj/4/v1/x")[0].rollout_id


def test_headers_count_in_their_order_and_the_session_last() -> None:
    headers = {
        "x-session-id": "s",
        "x-trajectory-id": "t",
        "x-rollout-id": "r",
        "x-attempt-id": "at",
        "x-nemo-gym-rollout-id": "g",
    }
    answers = []
    for name in ("x-nemo-gym-rollout-id", "x-rollout-id", "x-trajectory-id", "x-session-id"):
        answers += [claim.rollout_id for claim in header_claims(headers)]
        del headers[name]
    assert answers == ["g", "r.at", "t", "s"]
    assert header_claims(headers) == []


def test_fields_count_at_the_top_and_in_the_metadata() -> None:
    carriers = [{"rollout_id": "a"}, {"metadata": {"_ng_rollout_id": "b"}}, None, {"rollout_id": 5}, {"rollout_id": ""}]
    assert [claim.rollout_id for claim in field_claims(*carriers)] == ["a", "b", "5"]
    assert refused(resolve_rollout(field_claims({"rollout_id": ["x"]}))) == "bad_rollout_id"


@pytest.mark.parametrize(
    ("name", "field", "expected"),
    [
        ("openai-batch", "custom_id", ["q1"]),
        ("jsonl", "request.messages.0.role", ["user"]),
        ("har", "request.headers.0.value", ["s1"]),
        ("jsonl", "request.messages.7.role", []),
        ("jsonl", "response.choices.0.index", ["0"]),
    ],
)
def test_the_user_may_name_the_field(tmp_path: Path, name: str, field: str, expected: list[str]) -> None:
    path = tmp_path / ONE_CALL[name][0]
    path.write_bytes(ONE_CALL[name][1])
    (call,) = exchanges(readings(path, rollout_from=field))
    assert [claim.rollout_id for claim in call.claims if claim.source == "option"] == expected


def test_a_file_name_counts_where_it_is_that_of_a_capture_file() -> None:
    assert file_name_claims("t1-0.capture.jsonl.gz") == [RolloutClaim("file_name", "t1-0")]
    assert file_name_claims("t1-0.tokens.jsonl") == [RolloutClaim("file_name", "t1-0")]
    assert file_name_claims("t1-0.jsonl") == file_name_claims("t1-0.tokens.state.json") == []


@given(st.lists(st.builds(RolloutClaim, st.sampled_from(SOURCES), st.text(max_size=6) | st.just("a")), max_size=4))
def test_whatever_is_claimed_the_answer_is_a_good_id_or_a_refusal(told: list[RolloutClaim]) -> None:
    answer = resolve_rollout(told)
    assert isinstance(answer, Defect) or is_rollout_id(answer)


@given(st.text(max_size=4), st.one_of(st.none(), st.integers(), st.text(max_size=12)))
def test_an_attempt_begins_with_its_rollout(rollout_id: str, attempt: object) -> None:
    assert of_attempt(rollout_id, attempt).startswith(rollout_id)
