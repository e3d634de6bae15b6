"""What a run was asked for, against what came."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.errors import UsageError
from ng_capture.natural_order import natural_key
from ng_capture.outputs.health.expectation import Expectation, read_expected_ids
from ng_capture.verdicts.health.tally import Expected
from tests.support.forge import compressed


def seen(expectation: Expectation, **rollouts: bool) -> Expectation:
    for rollout_id, captured in rollouts.items():
        expectation.see(rollout_id.replace("_", "-"), captured=captured)
    return expectation


# By name


def test_what_was_asked_for_and_not_captured_is_missing_and_what_nobody_asked_for_is_an_orphan() -> None:
    expectation = seen(Expectation(ids=frozenset({"1-0", "2-0", "10-0"})), **{"2_0": True, "3_0": True, "1_0": False})
    assert expectation.outcome() == Expected(3, 2, 1, ("1-0", "10-0"), ("3-0",))


def test_a_rollout_that_came_without_a_call_is_missing_and_not_absent() -> None:
    expectation = seen(Expectation(ids=frozenset({"1-0", "2-0"})), **{"1_0": False})
    assert (expectation.absent(), expectation.unnamed()) == (["2-0"], 0)
    assert expectation.outcome().missing_ids == ("1-0", "2-0")


def test_a_rollout_that_nobody_asked_for_and_that_has_no_call_is_no_orphan() -> None:
    assert seen(Expectation(ids=frozenset({"1-0"})), **{"1_0": True, "2_0": False}).outcome() == Expected(
        1, 0, 0, (), ()
    )


def test_a_later_attempt_stands_for_the_rollout_that_was_asked_for() -> None:
    expectation = Expectation(ids=frozenset({"1-0", "2-0", "3-0-a1", "4-0"}))
    for rollout_id, captured in (
        ("1-0-a2", True),
        ("2-0", False),
        ("2-0-a1", True),
        ("3-0-a1", True),
        ("4-0-a1", False),
    ):
        expectation.see(rollout_id, captured=captured)
    assert expectation.outcome() == Expected(4, 1, 0, ("4-0",), ())
    assert expectation.absent() == []


def test_the_first_attempt_does_not_stand_for_a_later_one_that_was_asked_for() -> None:
    expectation = Expectation(ids=frozenset({"1-0-a1"}))
    expectation.see("1-0", captured=True)
    assert expectation.outcome() == Expected(1, 1, 1, ("1-0-a1",), ("1-0",))


names = st.sampled_from(["1-0", "2-0", "10-0", "a", "b"])


@given(asked=st.frozensets(names, min_size=1), came=st.dictionaries(names, st.booleans()))
def test_every_rollout_is_captured_missing_or_an_orphan(asked: frozenset[str], came: dict[str, bool]) -> None:
    expectation = Expectation(ids=asked)
    for rollout_id, captured in came.items():
        expectation.see(rollout_id, captured=captured)
    outcome = expectation.outcome()
    captured_ids = {rollout_id for rollout_id, captured in came.items() if captured}
    assert outcome.missing_ids is not None and outcome.orphan_ids is not None
    assert set(outcome.missing_ids) == asked - captured_ids and set(outcome.orphan_ids) == captured_ids - asked
    assert (outcome.rollouts, outcome.missing, outcome.orphans) == (
        len(asked),
        len(outcome.missing_ids),
        len(outcome.orphan_ids),
    )
    assert set(expectation.absent()) == asked - set(came)
    for ids in (outcome.missing_ids, outcome.orphan_ids, expectation.absent()):
        assert list(ids) == sorted(ids, key=natural_key)


# By number


@pytest.mark.parametrize(
    ("number", "outcome", "unnamed"),
    [(1, Expected(1, 0, 1), 0), (2, Expected(2, 0, 0), 0), (3, Expected(3, 1, 0), 0), (5, Expected(5, 3, 0), 2)],
)
def test_of_a_number_only_numbers_are_missing(number: int, outcome: Expected, unnamed: int) -> None:
    expectation = seen(Expectation(number=number), **{"1_0": True, "2_0": True, "3_0": False})
    assert (expectation.outcome(), expectation.unnamed(), expectation.absent()) == (outcome, unnamed, [])


def test_the_attempts_of_a_rollout_are_one_rollout_of_the_number() -> None:
    expectation = Expectation(number=2)
    for rollout_id in ("1-0", "1-0-a1", "1-0-a2"):
        expectation.see(rollout_id, captured=True)
    assert (expectation.outcome(), expectation.unnamed()) == (Expected(2, 1, 0), 1)


def test_a_rollout_that_is_seen_twice_is_one() -> None:
    expectation = Expectation(number=1)
    for _ in range(2):
        expectation.see("1-0", captured=True)
    assert expectation.outcome() == Expected(1, 0, 0)


# The file


def ids_of(path: Path, data: bytes) -> frozenset[str]:
    (path / "tasks").write_bytes(data)
    return read_expected_ids(str(path / "tasks"))


@pytest.mark.parametrize(
    ("data", "ids"),
    [
        (b"1-0\n2-0\n", {"1-0", "2-0"}),
        (b"1-0", {"1-0"}),
        (b"\n  1-0 \r\n\n1-0\n", {"1-0"}),
        (b"\xef\xbb\xbf1-0\n", {"1-0"}),
        (b'\xef\xbb\xbf{"_ng_rollout_id": "1-0"}\n', {"1-0"}),
        (b'{"_ng_rollout_id": "1-0", "more": [1]}\n2-0\n', {"1-0", "2-0"}),
        (b'{"_ng_task_index": 4, "_ng_rollout_index": 0}\n', {"4-0"}),
        (b'{"_ng_task_index": 4, "_ng_rollout_index": 0, "_ng_attempt_index": 2}\n', {"4-0-a2"}),
        (b'{"_ng_task_index": 4, "_ng_rollout_index": 0, "_ng_attempt_index": 0}\n', {"4-0"}),
    ],
)
def test_a_file_names_rollouts_by_rows_or_by_an_id_a_line(tmp_path: Path, data: bytes, ids: set[str]) -> None:
    assert ids_of(tmp_path, data) == ids


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "names no rollout"),
        (b"\n \n", "names no rollout"),
        (b"1-0\n\n../2-0\n", ":3: '../2-0' is no rollout id"),
        (b"a b\n", ":1: 'a b' is no rollout id"),
        (b"1-0\n\xef\xbb\xbf2-0\n", ":2: '\\ufeff2-0' is no rollout id"),
        (b'"1-0"\n', ":1: '\"1-0\"' is no rollout id"),
        (b"\xff\n", ":1: neither a JSON object nor a rollout id"),
        (b"1-0\n{]\n", ":2: neither a JSON object nor a rollout id"),
        (b'{"_ng_rollout_id": NaN}\n', ":1: neither a JSON object nor a rollout id"),
        (b'{"_ng_rollout_id": 7}\n', ":1: malformed rollout id: 7"),
        (b'{"_ng_rollout_id": "1-0\\n"}\n', r":1: '1-0\n' is no rollout id"),
        (b'{"_ng_rollout_id": "1-0", "_ng_attempt_index": "x"}\n', ":1: malformed attempt index: 'x'"),
        (b'{"_ng_task_index": "a/b", "_ng_rollout_index": 0}\n', ":1: 'a/b-0' is no rollout id"),
        (b'{"_ng_task_index": 4}\n', ":1: names no rollout"),
    ],
)
def test_a_line_that_names_no_rollout_is_told_by_its_place(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(UsageError) as told:
        ids_of(tmp_path, data)
    assert told.value.message.startswith(f"{tmp_path / 'tasks'}:") and told.value.message.endswith(message)


def test_rows_that_name_no_rollout_can_still_be_counted(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        ids_of(tmp_path, b'{"task": "x"}\n')
    assert told.value.hint is not None and "--expect-rollouts" in told.value.hint


@pytest.mark.parametrize("part", ["", ".gz", ".zst"])
def test_the_file_may_be_compressed(tmp_path: Path, part: str) -> None:
    path = tmp_path / f"tasks.jsonl{part}"
    path.write_bytes(compressed(b"1-0\n2-0\n", part))
    assert read_expected_ids(str(path)) == {"1-0", "2-0"}


@pytest.mark.parametrize("name", ["absent", "."])
def test_what_is_no_file_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no such file of expected rollouts"):
        read_expected_ids(str(tmp_path / name))


@settings(deadline=None)
@given(ids=st.sets(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,5}", fullmatch=True), min_size=1), as_rows=st.booleans())
def test_whatever_ids_a_file_names_are_the_ids(
    ids: set[str], as_rows: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [json.dumps({"_ng_rollout_id": each}) if as_rows else each for each in ids]
    assert ids_of(tmp_path_factory.getbasetemp(), "\n".join(lines).encode()) == ids
