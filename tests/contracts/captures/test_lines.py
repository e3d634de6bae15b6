"""Lines of captures: every fault at once, with its place (contracts.md 5.1)."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.contracts.captures.contracts import CAPTURE, JSONL, TOKENS
from ng_capture.contracts.captures.rules import RULES
from ng_capture.contracts.interface import Head, Options, Read, Reader
from ng_capture.contracts.recognition import recognise
from ng_capture.contracts.sources import Source
from ng_capture.contracts.validation import validate as validate_paths
from ng_capture.errors import SurroundingsError
from tests.support.captured import ROLLOUT, converted, document, faults_in, put, rules_of, steps
from tests.support.forge import Forge, Row
from tests.support.raw_calls import chat_call, says, user

FILE = f"{ROLLOUT}.capture.jsonl"


def good(call_id: str = "a", **fields: Any) -> Row:
    return chat_call(call_id, [user("hi")], says("Hello."), **fields)


def lines(directory: Path, *data: bytes) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / FILE).write_bytes(b"".join(data))
    return directory


def encoded(row: Row) -> bytes:
    return json.dumps(row).encode() + b"\n"


def test_a_good_line_has_no_fault(tmp_path: Path) -> None:
    assert faults_in(put(tmp_path, [good()])) == []


BROKEN = {
    "capture.call_id.missing": (good() | {"model_call_id": None}, "/model_call_id"),
    "capture.dialect.missing": ({key: value for key, value in good().items() if key != "dialect"}, "/dialect"),
    "capture.dialect.unknown": (good() | {"dialect": "gemini"}, "/dialect"),
    "capture.field.type": (good() | {"latency_ms": "12"}, "/latency_ms"),
    "capture.field.unknown": (good() | {"colour": 1}, "/colour"),
    "capture.request_missing": (good() | {"request": None}, "/request"),
    "capture.response_missing": (good() | {"response": None}, "/response"),
    "capture.error_category.missing": (good() | {"status_code": 429}, "/error_category"),
    "capture.error_category.unknown": (good() | {"status_code": 429, "error_category": "bad_luck"}, "/error_category"),
    "capture.times.order": (good() | {"started_at": 5.0, "completed_at": 4.0}, "/completed_at"),
    "capture.stream_truncated": (
        good() | {"response": None, "response_raw": 'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'},
        "/response_raw",
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_told_with_its_place_and_severity(rule: str, tmp_path: Path) -> None:
    row, path = BROKEN[rule]
    (fault,) = faults_in(put(tmp_path, [good("z"), row]))
    assert (fault.rule, fault.path, fault.line, fault.file) == (rule, path, 2, FILE)
    assert fault.severity == RULES[rule].severity


def test_all_faults_of_a_line_are_told_at_once(tmp_path: Path) -> None:
    row = good() | {"dialect": 3, "status_code": -1, "model_ref": [], "upstream_attempted": 1, "latency_ttft_ms": -2.0}
    row |= {"response_source": "upstream", "request": None}
    told = rules_of(faults_in(put(tmp_path, [row])))
    assert [path for rule, path, _ in told if rule == "capture.field.type"] == [
        "/dialect",
        "/status_code",
        "/model_ref",
        "/upstream_attempted",
    ]
    assert ("capture.request_missing", "/request", 1) in told
    assert ("capture.times.order", "/latency_ttft_ms", 1) in told


def test_a_line_that_failed_needs_no_response(tmp_path: Path) -> None:
    row = chat_call("a", [user("hi")], None, status_code=503, error_category="upstream_error")
    assert faults_in(put(tmp_path, [row])) == []


@pytest.mark.parametrize(
    ("tail", "rule", "severity"),
    [
        (b'{"model_call_id": "b", "di', "capture.torn_tail", "error"),
        (encoded(good("b"))[:-1], "capture.missing_newline", "warning"),
        (b"\0\0\0\0\n", "capture.nul_bytes", "error"),
        (b"not json\n", "capture.damaged_line", "error"),
        (b"[1, 2]\n", "capture.damaged_line", "error"),
        (encoded(good("b"))[:-1] + encoded(good("c")), "capture.damaged_line", "error"),
        (encoded(good("b")).replace(b"Hello.", b"\\ud800"), "capture.lone_surrogate", "warning"),
        (encoded(good()), "capture.duplicate_record", "info"),
        (encoded(good(at=9.0)), "capture.conflicting_records", "error"),
    ],
)
def test_damage_behind_a_good_line_is_named(tmp_path: Path, tail: bytes, rule: str, severity: str) -> None:
    (fault,) = faults_in(lines(tmp_path, encoded(good()), tail))
    assert (fault.rule, fault.severity, fault.line) == (rule, severity, 2)
    # the good line is there all the same
    assert document(tmp_path, "eval")["steps"][0]["model_call_id"] == "a"


def test_a_damaged_line_takes_no_other_with_it(tmp_path: Path) -> None:
    lines(tmp_path, b"{broken\n", encoded(good()), b"\n", b"{broken\n")
    assert rules_of(faults_in(tmp_path)) == [("capture.damaged_line", "", 1), ("capture.damaged_line", "", 4)]
    assert steps(document(tmp_path, "atif"))[1][1] == "Hello."


@pytest.mark.parametrize("whole", [json.dumps([good()], indent=1).encode(), json.dumps(good(), indent=1).encode()])
def test_json_that_is_not_one_object_a_line_is_told_once(tmp_path: Path, whole: bytes) -> None:
    rules = [fault.rule for fault in faults_in(lines(tmp_path, whole))]
    assert rules == ["capture.not_one_object_per_line", "capture.empty_capture"]


def test_a_byte_order_mark_is_noted(tmp_path: Path) -> None:
    (fault,) = faults_in(lines(tmp_path, b"\xef\xbb\xbf", encoded(good())))
    assert (fault.rule, fault.severity) == ("capture.bom", "info")


def test_a_compressed_file_that_ends_too_early_gives_what_is_whole(tmp_path: Path) -> None:
    rows = [good(f"c{number}", at=float(number)) for number in range(300)]
    data = gzip.compress(b"".join(map(encoded, rows)), compresslevel=1)
    (tmp_path / f"{FILE}.gz").write_bytes(data[: len(data) // 2])
    faults = faults_in(tmp_path)
    assert "capture.file_truncated" in [fault.rule for fault in faults]
    assert len(document(tmp_path, "eval")["steps"]) > 10


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_a_file_without_a_line_is_an_empty_capture(tmp_path: Path, data: bytes) -> None:
    lines(tmp_path, data)
    assert [fault.rule for fault in faults_in(tmp_path)] == ["capture.empty_capture"]
    (refused,) = converted(tmp_path, "atif")
    assert [fault.rule for fault in refused.faults] == ["capture.empty_capture"]


def test_a_rollout_of_which_only_an_announced_call_is_left_is_refused(tmp_path: Path) -> None:
    put(tmp_path, [good()], "r-2")
    (tmp_path / "r-1.tokens.intents").write_bytes(b"c1\n")
    (tmp_path / "r-1.tokens.state.json").write_bytes(b'{"incomplete": true}')
    refused, one = converted(tmp_path, "atif")
    assert [(fault.rule, fault.file, fault.line) for fault in refused.faults] == [
        ("tokens.capture_incomplete", "r-1.tokens.intents", 1),
        ("capture.empty_capture", None, None),
    ]
    assert refused.written is None
    assert one.written is not None


def test_what_stays_of_a_retired_rollout_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, [good()], "r-2")
    (tmp_path / "r-1.tokens.state.json").write_bytes(b'{"retired": true, "frozen": true}')
    assert [one.name.stem for one in converted(tmp_path, "atif")] == ["r-2"]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"tokens.intents": b"A\nlost\n"}, [("tokens.capture_incomplete", 2)]),
        ({"tokens.incomplete": b"lost\n"}, [("tokens.capture_incomplete", 1)]),
        ({"tokens.incomplete": b""}, [("tokens.capture_incomplete", None)]),
        ({"tokens.state.json": b'{"incomplete": true}'}, [("tokens.capture_incomplete", None)]),
        ({"tokens.state.json": b'{"entry_digests": {"lost": "0"}}'}, [("tokens.capture_incomplete", None)]),
        ({"tokens.state.json": b"not json"}, [("tokens.state_unreadable", None)]),
        ({"tokens.state.json": b'{"refusals": [{"model_call_id": "lost"}]}', "tokens.intents": b"lost\n"}, []),
        ({"capture.incomplete": b""}, [("capture.capture_incomplete", None)]),
    ],
)
def test_marks_beside_records_tell_of_lost_calls(
    tmp_path: Path, files: dict[str, bytes], found: list[tuple[str, int | None]]
) -> None:
    forge = Forge(ROLLOUT)
    forge.root([1, 2], [3], id="A")
    forge.write(tmp_path, state=False, intents=False)
    for kind, data in files.items():
        (tmp_path / f"{ROLLOUT}.{kind}").write_bytes(data)
    assert [(fault.rule, fault.line) for fault in faults_in(tmp_path)] == found
    gaps = (document(tmp_path, "atif").get("extra") or {}).get("ng_capture", {}).get("gaps", [])
    assert bool(gaps) == bool(found)


def test_faults_of_records_name_their_array(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT)
    call = forge.root([1, 2], [3, 4], id="A")
    call.fields["generation_log_probs"] = [-0.5, 2.0]
    call.fields["rollout_id"] = "other"
    forge.write(tmp_path)
    told = rules_of(faults_in(tmp_path))
    assert ("tokens.logprob_positive", "/generation_log_probs/1", 1) in told
    assert ("tokens.rollout_id_mismatch", "", 1) in told


@pytest.mark.parametrize("fields", [{"cum_len": 9}, {"digest": "0" * 64}])
def test_a_record_that_contradicts_itself_is_told(tmp_path: Path, fields: Row) -> None:
    forge = Forge(ROLLOUT)
    forge.root([1, 2], [3, 4], **fields)
    forge.write(tmp_path)
    assert [fault.rule for fault in faults_in(tmp_path)] == ["tokens.digest_mismatch"]


def test_two_contents_of_one_record_are_told(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT)
    first = forge.root([1, 2], [3, 4], id="A")
    other = dict(first.record()) | {"generation_token_ids": [3, 5], "digest": None}
    put(tmp_path, [first.line(), first.line(), other], kind="tokens")
    rules = [fault.rule for fault in faults_in(tmp_path)]
    assert rules == ["tokens.duplicate_record", "tokens.conflicting_records"]


def test_lines_of_several_rollouts_in_one_file_are_several_captures(tmp_path: Path) -> None:
    rows = [good("a", rollout_id="x-1"), good("b", rollout_id="x-2"), b"{torn", good("c", rollout_id="x-1", at=3.0)]
    path = put(tmp_path, rows) / FILE
    named = path.rename(tmp_path / "all.jsonl")
    outcomes = converted(named, "eval")
    assert [one.place for one in outcomes if one.written] == ["x-2", "x-1"]
    assert [fault.rule for one in outcomes for fault in one.faults if one.written is None] == ["capture.damaged_line"]
    assert [fault.line for fault in faults_in(named) if fault.severity == "error"] == [3]


def test_a_line_of_a_table_that_cannot_be_read_is_one_of_its_rollout(tmp_path: Path) -> None:
    forge = Forge("x-1")
    broken = dict(forge.root([1], [2]).record()) | {"model_call_id": 5}
    path = tmp_path / "all.jsonl"
    path.write_bytes(encoded(forge.root([1], [2], id="A").record()) + encoded(broken))
    rules = [(fault.rule, fault.line) for fault in faults_in(path)]
    assert ("tokens.invalid_record", 2) in rules


@pytest.mark.parametrize("cut", [True, False])
def test_a_table_may_be_compressed(tmp_path: Path, cut: bool) -> None:
    data = gzip.compress(b"".join(encoded(good(f"c{n}", rollout_id=f"x-{n}")) for n in range(200)))
    path = tmp_path / "all.jsonl.gz"
    path.write_bytes(data[: len(data) // 2] if cut else data)
    outcomes = converted(path, "eval")
    assert len([one for one in outcomes if one.written]) == 200 or cut
    assert ["capture.file_truncated" for one in outcomes if one.written is None] == ["capture.file_truncated"] * cut


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_bytes(b"\n")
    (refused,) = converted(path, "eval")
    assert [fault.rule for fault in refused.faults] == ["capture.empty_capture"]


def reader(contract: Any) -> Reader:
    assert isinstance(contract.reader, Reader)
    return contract.reader


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (Head("runs", True, ["x.tokens.jsonl"]), CAPTURE),
        (Head("x.capture.jsonl", False, None), CAPTURE),
        (Head("x.jsonl", False, {"dialect": "chat", "request": {}}), CAPTURE),
        (Head("x.jsonl", False, {"prompt_token_ids": [], "generation_token_ids": []}), TOKENS),
        (Head("x.jsonl", False, {"rollout_id": "r", "ng_capture_call": {}}), JSONL),
        (Head("x.jsonl", False, {"steps": []}), None),
        (Head("runs", True, ["a.txt"]), None),
    ],
)
def test_captures_are_known_by_what_is_in_them(head: Head, known: Any) -> None:
    found = [each for each in (CAPTURE, JSONL, TOKENS) if reader(each).recognises(head)]
    assert found[:1] == ([known] if known else [])


def test_a_directory_is_validated_as_one_source(tmp_path: Path) -> None:
    put(tmp_path, [good()], "r-1")
    put(tmp_path, [good()], "r-2")
    (only,) = validate_paths(recognise([str(tmp_path)], None))
    assert (only.contract, only.faults) == ("capture", ())


def test_a_file_that_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    put(tmp_path, [good()], "r-2")
    (tmp_path / FILE).mkdir()
    reading = reader(CAPTURE).read(Source(str(tmp_path)), Options())
    assert isinstance(next(reading), Read)
    with pytest.raises(SurroundingsError, match=FILE):
        next(reading)


def test_a_prompt_that_is_no_json_is_a_damaged_line_wherever_it_stands(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT)
    first = forge.root([1, 2], [3], id="A")
    second = first.then([4], [5], id="B")
    broken = second.line().replace(b'"prompt_token_ids":[1,', b'"prompt_token_ids":[1 1,')
    assert broken != second.line()
    # the child stands before its parent, so its prompt waits
    put(tmp_path, [broken, first.line()], kind="tokens")
    assert ("tokens.damaged_line", "", 1) in rules_of(faults_in(tmp_path))


def test_a_line_that_is_no_object_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_bytes(encoded(good(rollout_id="x-1")) + b"[1]\n")
    assert [(fault.rule, fault.line) for fault in faults_in(path)] == [("capture.damaged_line", 2)]


def test_an_id_of_a_blank_mark_is_the_whole_rollout(tmp_path: Path) -> None:
    put(tmp_path, [good()])
    (tmp_path / f"{ROLLOUT}.tokens.incomplete").write_bytes(b"lost\n\n")
    told = [fault.message for fault in faults_in(tmp_path)]
    assert told == ["call lost, was marked incomplete", "the rollout is marked so"]


FOREIGN = {
    "Gym rollout row": {"responses_create_params": {"input": "hi"}, "response": {"output": []}},
    "Gym token record": Forge(ROLLOUT).root([1], [2]).record(),
    "ATOF event": {"atof_version": "0.1", "kind": "mark"},
    "ATIF trajectory": {"schema_version": "ATIF-v1.7", "agent": {}, "steps": []},
    "chat messages": {"id": "x", "messages": [], "response": {}},
    "nothing of a call is in it": {"colour": 1},
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_line_of_another_format_is_refused_by_name(tmp_path: Path, name: str) -> None:
    put(tmp_path, [good(), FOREIGN[name]])
    (fault,) = faults_in(tmp_path)
    assert (fault.rule, fault.severity, fault.line) == ("capture.foreign_line", "error", 2)
    assert name in fault.message
    assert len(document(tmp_path, "eval")["steps"]) == 1


def test_a_response_alone_is_a_call_of_which_nobody_knows_more(tmp_path: Path) -> None:
    put(tmp_path, [{"response": good()["response"]}])
    assert "capture.foreign_line" not in [fault.rule for fault in faults_in(tmp_path)]
    assert steps(document(tmp_path, "atif"))[-1][1] == "Hello."
