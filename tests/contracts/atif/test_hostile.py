"""Whatever stands at whatever place of a document: it is read or its faults are told, and nothing crashes."""

import json
from typing import Any

import pytest

from ng_capture.contracts.atif.read import read_document
from ng_capture.contracts.atif.schema import LISTS, OBJECTS
from ng_capture.contracts.atif.validate import CONTRACT, check_document
from ng_capture.contracts.careful_json import read_carefully
from ng_capture.contracts.episode import Episode
from ng_capture.contracts.rules import has_errors
from tests.support.atif import write_one
from tests.support.atif_full import changed, full_document, noted_document, places, removed


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


VALUES = [
    None,
    True,
    -1,
    10**400,
    1.5,
    float("nan"),
    float("-inf"),
    "",
    "\ud800",
    "ATIF-v1.3",
    "user",
    "agent",
    [],
    [None],
    [[], {}],
    [{"type": "text", "text": "q"}],
    {},
    {"": 1},
    {"ng_capture": {"role": "instructions", "reasoning": [{}], "kind": "x", "call_id": "c1"}},
    {"ng_capture": 1, "role": "instructions", "messages": 1, "tokens": 2},
    nested(260),
]


def survive(document: object) -> Episode | None:
    """The episode of a document, through its text; None where it has errors."""
    careful = read_carefully(json.dumps(document).encode(), CONTRACT)
    faults = [*careful.faults, *check_document(careful.value)]
    for fault in faults:
        assert fault.path == "" or fault.path.startswith("/")
        f"{fault.message} {fault.path}".encode()
    return None if has_errors(faults) else read_document(careful.value)


def written_alike(episode: Episode | None) -> None:
    """What was read is written, soundly, and what is read of that is written again the same."""
    if episode is not None:
        document, _ = write_one(episode)
        assert not has_errors(check_document(document))
        assert write_one(read_document(document))[0] == document


def test_the_full_document_has_every_field_of_every_object() -> None:
    found: dict[str, set[str]] = {}

    def walk(value: Any, name: str) -> None:
        found.setdefault(name, set()).update(value)
        for field in OBJECTS[name].values():
            member, kind = value.get(field.name), {**LISTS, "content": "part"}.get(field.kind)
            if kind is not None and isinstance(member, list):
                for each in member:
                    walk(each, kind)
            elif isinstance(member, dict) and field.kind in OBJECTS:
                walk(member, field.kind)
            elif isinstance(member, dict) and field.name == "source":
                walk(member, f"{value['type']}_source")

    walk(full_document(), "trajectory")
    assert found == {name: set(fields) for name, fields in OBJECTS.items()}


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:24])
def test_any_value_at_any_place_is_read_or_told(value: object) -> None:
    base = noted_document()
    for path in places(base):
        written_alike(survive(changed(base, path, value)))


def test_any_member_may_be_missing() -> None:
    base = noted_document()
    for path in places(base):
        if path:
            written_alike(survive(removed(base, path)))


@pytest.mark.parametrize("value", [None, -1, 10**30, "", "agent", [], {}, [{"type": "text", "text": "q"}], nested(9)])
def test_what_is_read_of_v1_7_is_written_as_it_stood(value: object) -> None:
    base = full_document(7)
    for path in places(base):
        document = changed(base, path, value)
        episode = survive(document)
        if episode is not None:
            assert json.dumps(write_one(episode)[0], sort_keys=True) == json.dumps(document, sort_keys=True)


@pytest.mark.parametrize("name", ["session_id", "notes"])
def test_a_document_that_is_cut_anywhere_is_a_fault_of_syntax(name: str) -> None:
    data = json.dumps({name: full_document()[name], "steps": [1]}).encode()
    for end in range(len(data)):
        (fault,) = read_carefully(data[:end], CONTRACT).faults
        assert fault.rule == "atif.json.syntax"


@pytest.mark.parametrize("levels", [400, 3000, 100_000])
def test_a_document_that_is_nested_too_deeply_is_refused(levels: int) -> None:
    text = json.dumps(full_document()).replace('"e": 1', '"e": ' + "[" * levels + "]" * levels)
    (fault,) = read_carefully(text.encode(), CONTRACT).faults
    assert (fault.rule, fault.severity) == ("atif.json.syntax", "error")


def test_trajectories_in_trajectories_without_end_are_refused() -> None:
    text = '{"subagent_trajectories":[' * 5000 + "]}" * 5000
    (fault,) = read_carefully(text.encode(), CONTRACT).faults
    assert fault.rule == "atif.json.syntax"
    assert len(list(check_document(json.loads('{"subagent_trajectories":[' * 100 + "]}" * 100)))) > 100
