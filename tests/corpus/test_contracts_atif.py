"""ATIF documents that others wrote, and those that were broken on purpose (contracts.md 7.1 and 7.3)."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.atif.rule_table import RULES
from ng_capture.contracts.atif.validate import check_source
from ng_capture.contracts.interface import Options, Read, Written
from ng_capture.contracts.recognition import recognise
from ng_capture.contracts.sources import Source
from tests.support.corpus import corpus_file, corpus_root, ids_in

ROOT = corpus_root() / "contracts" / "atif"
EXPECTED = ROOT / "invalid" / "expected.json"
CASES: dict[str, Any] = (
    {case["file"]: case["expect"] for case in json.loads(EXPECTED.read_bytes())} if EXPECTED.exists() else {}
)
VALID = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("valid/**/*.json"))
FOREIGN = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("foreign/*.json"))


def read(name: str) -> Read:
    assert ATIF.reader is not None
    (outcome,) = ATIF.reader.read(Source(str(corpus_file(ROOT / name))), Options())
    assert isinstance(outcome, Read)
    return outcome


def written(name: str, **options: Any) -> tuple[Any, Written]:
    """The document made of a file, and what became of it."""
    assert ATIF.writer is not None
    done = ATIF.writer.write(read(name).episode, Options(**options))
    assert isinstance(done, Written)
    (data,) = done.documents
    return json.loads(data), done


def ordered(value: object) -> str:
    """A document with its keys in order: the spelling in which two are compared."""
    return json.dumps(value, sort_keys=True)


def stamped(document: Any, version: str) -> Any:
    """A document, and those in it, of another version."""
    told = {**document, "schema_version": version}
    if "subagent_trajectories" in told:
        told["subagent_trajectories"] = [stamped(each, version) for each in told["subagent_trajectories"]]
    return told


def without_conversion(document: Any) -> Any:
    """A document without what it says of its own conversion, and without what that alone stood in."""
    extra = dict(document["extra"])
    notes = dict(extra.pop("ng_capture"))
    del notes["conversion"]
    extra |= {"ng_capture": notes} if notes else {}
    rest = {key: value for key, value in document.items() if key != "extra"}
    return {**rest, "extra": extra} if extra else rest


@pytest.mark.parametrize("name", ids_in(EXPECTED, CASES))
def test_a_broken_document_is_told_by_the_rule_that_it_breaks(name: str) -> None:
    faults = check_source(Source(str(ROOT / "invalid" / name))).faults
    assert (CASES[name]["severity"], CASES[name]["rule"]) in {(fault.severity, fault.rule) for fault in faults}
    assert {fault.rule for fault in faults} <= RULES.keys()
    if CASES[name]["severity"] != "error":
        assert "error" not in {fault.severity for fault in faults}


@pytest.mark.parametrize("name", ids_in(ROOT / "valid", VALID))
def test_a_valid_document_has_no_errors(name: str) -> None:
    assert [fault for fault in read(name).faults if fault.severity == "error"] == []


@pytest.mark.parametrize("name", ids_in(ROOT / "valid", VALID))
def test_a_document_comes_back_equal_but_for_its_version(name: str) -> None:
    document = json.loads((ROOT / name).read_bytes())
    back, told = written(name)
    assert told.losses == ()
    if document["schema_version"] == "ATIF-v1.7":
        assert ordered(back) == ordered(document)
    else:
        assert back["extra"]["ng_capture"]["conversion"]["from"] == document["schema_version"]
        assert ordered(without_conversion(back)) == ordered(stamped(document, "ATIF-v1.7"))


@pytest.mark.parametrize("name", ids_in(ROOT / "valid", VALID))
def test_a_document_is_written_as_v1_8_on_request_and_comes_back(name: str) -> None:
    back, _ = written(name, atif_version="1.8")
    document = json.loads((ROOT / name).read_bytes())
    assert back["schema_version"] == "ATIF-v1.8"
    assert ordered(without_conversion(back)) == ordered(stamped(document, "ATIF-v1.8"))


@pytest.mark.parametrize("name", ids_in(ROOT / "foreign", FOREIGN))
def test_another_format_is_refused_by_its_name(name: str) -> None:
    checked = check_source(Source(str(ROOT / name)))
    (fault,) = checked.faults
    assert checked.document is None
    assert (fault.rule, fault.severity) == ("atif.foreign", "error")
    assert Path(name).stem in fault.message
    (found,) = recognise([str(ROOT / name)], None).sources
    assert found.contract is ATIF


def test_a_document_that_only_says_that_it_is_atif_is_refused_with_all_its_faults() -> None:
    path = corpus_file(ROOT / "real_invalid" / "relay-2026-03-example.json")
    checked = check_source(Source(str(path)))
    assert checked.document is None
    told = {(fault.rule, fault.path) for fault in checked.faults if fault.severity == "error"}
    assert told >= {
        ("atif.field.unknown", "/final_metrics/prompt_tokens"),
        ("atif.field.type", "/steps/0/message"),
        ("atif.field.type", "/steps/1/message"),
    }


def test_totals_that_count_sub_agents_and_calls_without_a_step_stay_what_they_are() -> None:
    name = "valid/harbor-0.9.0-terminus2-ctxsum/trajectory.json"
    thread = read(name).episode.main
    own = [turn.call.usage.tokens_in or 0 for turn in thread.turns if turn.fresh and turn.call is not None]
    assert thread.totals is not None and thread.totals.usage.tokens_in == 7802 and sum(own) == 6502
    timeout = read("valid/harbor-0.3.0-terminus2-timeout.json")
    assert timeout.episode.main.totals is not None and timeout.episode.main.totals.usage.tokens_in == 982
    assert {fault.rule for fault in timeout.faults} == {"atif.observation.unlinked"}


def test_the_copied_steps_of_a_continuation_are_no_output() -> None:
    turns = read("valid/harbor-0.3.0-terminus2-linear/trajectory.cont-1.json").episode.main.turns
    assert [turn.copied for turn in turns[:4]] == [True] * 4
    assert not any(turn.fresh for turn in turns[:4])


def test_tokens_of_a_call_are_those_of_its_step() -> None:
    turns = read("valid/harbor-0.9.0-terminus2-ctxsum/trajectory.json").episode.main.turns
    tokens = [turn.call for turn in turns if turn.call is not None and turn.call.tokens is not None]
    assert len(tokens) == 7
    for call in tokens:
        assert call.tokens is not None and call.tokens.complete
        assert call.usage.tokens_in == len(call.tokens.prompt_ids or ())
        assert call.usage.tokens_out == len(call.tokens.completion_ids or ())
