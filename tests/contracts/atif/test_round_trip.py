"""What ATIF says comes back as it was said: read into an episode and written again (contracts.md 7.1)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from ng_capture.contracts.atif.read import read_document
from ng_capture.contracts.atif.validate import check_document
from tests.support.atif import Doc, called, codes, document, documents, errors, put, with_steps, without, write_one
from tests.support.atif import agent_step as agent
from tests.support.atif import user_step as user
from tests.support.atif_full import full_document

small = settings(max_examples=60, deadline=None)


def ordered(value: object) -> str:
    """A document with its keys in order: the spelling in which two are compared, byte for byte."""
    return json.dumps(value, sort_keys=True)


def again(value: Doc, **options: Any) -> Doc:
    return write_one(read_document(value), **options)[0]


@small
@given(documents())
def test_a_valid_document_of_v1_7_comes_back_equal(value: Doc) -> None:
    assert errors(value) == []
    back, written = write_one(read_document(value))
    assert ordered(back) == ordered(value)
    assert written.losses == ()


@small
@given(documents())
def test_the_same_document_gives_the_same_bytes(value: Doc) -> None:
    shuffled = json.loads(json.dumps(value, sort_keys=True))
    assert write_one(read_document(value))[1] == write_one(read_document(value))[1]
    assert write_one(read_document(shuffled))[0] == write_one(read_document(value))[0]


@small
@given(documents())
def test_a_prefix_of_a_conversation_comes_back_as_a_prefix(value: Doc) -> None:
    end = len(value["steps"]) // 2 + 1
    steps = again(put(value, "/steps", value["steps"][:end]))["steps"]
    assert json.dumps(steps) == json.dumps(again(value)["steps"][:end])


@pytest.mark.parametrize("version", range(9))
def test_a_document_of_every_version_is_valid_with_all_its_fields(version: int) -> None:
    told = full_document(version)
    assert {fault.rule for fault in check_document(told)} == set()
    assert (read_document(told).version, told["schema_version"]) == (f"ATIF-v1.{version}",) * 2


@pytest.mark.parametrize("version", range(7))
def test_an_older_document_becomes_v1_7_and_changes_in_nothing_else(version: int) -> None:
    told = full_document(version)
    back, written = write_one(read_document(told))
    conversion = back["extra"].pop("ng_capture")["conversion"]
    assert (conversion["from"], conversion["to"]) == (f"ATIF-v1.{version}", "ATIF-v1.7")
    assert written.losses == () and conversion["losses"] == []
    if "extra" not in told:
        assert back.pop("extra") == {}
    assert ordered(back) == ordered({**told, "schema_version": "ATIF-v1.7"})


def test_a_sound_keeps_a_document_at_v1_8() -> None:
    assert ordered(again(full_document(8))) == ordered(full_document(8))


def test_v1_8_is_written_as_v1_7_where_there_is_no_sound_or_where_it_is_asked_for() -> None:
    silent = without(full_document(8), "/steps/1/message/2")
    assert again(silent)["schema_version"] == "ATIF-v1.7"
    back, written = write_one(read_document(full_document(8)), atif_version="1.7")
    assert [(loss.code, loss.path) for loss in written.losses] == [("media_omitted", "/steps/1/message/2")]
    assert back["steps"][1]["message"][2]["type"] == "text"
    assert again(back, atif_version="1.7") == back
    assert again(back)["steps"] == back["steps"]


def test_v1_8_is_written_where_it_is_asked_for() -> None:
    back = again(full_document(7), atif_version="1.8")
    assert back["schema_version"] == back["subagent_trajectories"][0]["schema_version"] == "ATIF-v1.8"


def test_the_session_that_named_a_sub_agent_to_v1_6_becomes_its_id() -> None:
    step = agent(
        tool_calls=[called("c1")],
        observation={"results": [{"source_call_id": "c1", "subagent_trajectory_ref": [{"session_id": "s-2"}]}]},
    )
    told = with_steps(user(), step, schema_version="ATIF-v1.6")
    assert [(fault.rule, fault.severity) for fault in check_document(told)] == [
        ("atif.subagent_ref.unresolvable", "warning")
    ]
    back, written = write_one(read_document(told))
    assert codes(written) == ["subagent_by_session"]
    (reference,) = back["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"]
    assert reference == {"trajectory_id": "s-2", "session_id": "s-2"}
    assert errors(back) == []


def test_another_conversion_of_a_document_keeps_what_the_first_one_said() -> None:
    old = again(document(schema_version="ATIF-v1.5"))
    new = again(old, atif_version="1.8")
    first = old["extra"]["ng_capture"]["conversion"]
    assert new["extra"]["ng_capture"]["conversion"]["before"] == first
    assert again(old) == old
    assert again(put(old, "/notes", "n"))["extra"] == old["extra"]
