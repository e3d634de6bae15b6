"""Every fault of a stream at once, at its place, by its rule (contracts.md 2.1)."""

import json
from typing import Any

import pytest

from ng_capture.contracts.atof.nesting import DEEPEST
from ng_capture.contracts.atof.rules import RULES
from ng_capture.contracts.episode import Thread
from ng_capture.contracts.interface import Read
from tests.support.atof_events import Event, agent, begin, end, llm, mark, tool, user
from tests.support.conversions import as_lines, faults_of, outcomes_of, refused

TALK = agent("a", 0, 9, *llm("l", 1, [user("hi")], "yo"))
SOUND = [*TALK[:1], mark("m", 0.5, "a", {"x": 1}), *TALK[1:]]


def test_a_sound_stream_has_no_fault() -> None:
    assert faults_of("atof", SOUND) == []


@pytest.mark.parametrize(
    ("rule", "path", "changed"),
    [
        ("atof.kind", "/kind", {"kind": "span"}),
        ("atof.version", "/atof_version", {"atof_version": "1.0"}),
        ("atof.version", "/atof_version", {"atof_version": 0.1}),
        ("atof.field.missing", "/name", {"name": ...}),
        ("atof.field.missing", "/kind", {"kind": ...}),
        ("atof.field.missing", "/category", {"category": ...}),
        ("atof.field.type", "/name", {"name": 7}),
        ("atof.field.type", "/uuid", {"uuid": ""}),
        ("atof.field.type", "/parent_uuid", {"parent_uuid": 3}),
        ("atof.field.type", "/category", {"category": None}),
        ("atof.field.type", "/metadata", {"metadata": []}),
        ("atof.field.type", "/data_schema/version", {"data_schema": {"name": "x"}}),
        ("atof.field.type", "/category_profile/model_name", {"category_profile": {"model_name": 1}}),
        ("atof.field.type", "/attributes", {"attributes": [1]}),
        ("atof.timestamp.invalid", "/timestamp", {"timestamp": -1}),
        ("atof.timestamp.invalid", "/timestamp", {"timestamp": 1.5}),
        ("atof.timestamp.invalid", "/timestamp", {"timestamp": True}),
        ("atof.timestamp.invalid", "/timestamp", {"timestamp": "2026-02-30T00:00:00Z"}),
        ("atof.timestamp.invalid", "/timestamp", {"timestamp": "2026-02-03T24:00:00Z"}),
        ("atof.timestamp.naive", "/timestamp", {"timestamp": "2026-01-01T00:00:01"}),
        ("atof.scope_category", "/scope_category", {"scope_category": "middle"}),
        ("atof.category.unknown", "/category", {"category": "oracle"}),
        ("atof.category.subtype", "/category_profile/subtype", {"category": "custom"}),
        ("atof.profile.tool_call_id", "/category_profile/tool_call_id", {"category": "tool"}),
        ("atof.attributes.order", "/attributes", {"attributes": ["streaming", "parallel"]}),
        ("atof.attributes.order", "/attributes", {"attributes": ["remote", "remote"]}),
        ("atof.attributes.unknown", "/attributes/0", {"attributes": ["fast"]}),
        ("atof.parent.unknown", "/parent_uuid", {"parent_uuid": "elsewhere"}),
    ],
)
def test_a_broken_field_is_named_with_its_rule_and_place(rule: str, path: str, changed: Event) -> None:
    broken = {key: value for key, value in {**SOUND[2], **changed}.items() if value is not ...}
    found = [(fault.rule, fault.path, fault.line) for fault in faults_of("atof", [*SOUND[:2], broken, *SOUND[3:]])]
    assert (rule, path, 3) in found


@pytest.mark.parametrize("attributes", [["acme.fast"], ["parallel", "remote"]])
def test_a_flag_of_a_vendor_and_known_flags_in_order_are_sound(attributes: list[str]) -> None:
    assert faults_of("atof", [{**each, "attributes": attributes} for each in TALK]) == []


@pytest.mark.parametrize("key", ["scope_category", "attributes"])
def test_a_mark_has_no_field_of_a_scope(key: str) -> None:
    (fault,) = faults_of("atof", [*SOUND, mark("n", 3, "a", **{key: []})])
    assert (fault.rule, fault.path, fault.severity) == ("atof.mark.scope_fields", f"/{key}", "error")


def test_all_faults_are_told_at_once_in_the_order_of_lines() -> None:
    worst = {"kind": "scope", "atof_version": "2", "timestamp": "now", "uuid": 1, "data_schema": 4}
    found = faults_of("atof", as_lines([worst]) + b"{\n" + b'[1]\n{"kind": "mark", "kind": "mark"}\n')
    assert [fault.line for fault in found] == sorted(fault.line or 0 for fault in found)
    assert [fault.rule for fault in found if fault.line == 1] == [
        *["atof.field.missing"] * 3,
        *["atof.field.type"] * 2,
        *("atof.version", "atof.timestamp.invalid"),
    ]
    assert [fault.rule for fault in found if fault.line in (2, 3)] == ["atof.json.syntax", "atof.event"]
    assert "atof.json.duplicate_key" in {fault.rule for fault in found if fault.line == 4}
    assert all(fault.severity == RULES[fault.rule].severity for fault in found)


@pytest.mark.parametrize("kind", ["ScopeStart", "ScopeEnd", "Mark", "StreamHeaderEvent"])
def test_a_draft_of_before_0_1_is_named_and_refused(kind: str) -> None:
    draft = {"kind": kind, "uuid": "x", "timestamp": 1, "scope_type": "llm", "profile": None, "schema": None}
    (fault,) = faults_of("atof", [draft])
    assert fault.rule == "atof.draft" and kind in fault.message and fault.severity == "error"
    assert refused("atof", [draft]) == ["atof.draft"]
    assert refused("atof", [*SOUND, draft]) == ["atof.draft"]


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_an_empty_file_is_refused_and_never_an_empty_trajectory(data: bytes) -> None:
    assert refused("atof", data) == ["atof.empty"]
    assert [fault.rule for fault in faults_of("atof", data)] == ["atof.empty"]


class TestScopes:
    def test_an_event_that_stands_twice_is_told_and_counts_once(self) -> None:
        (fault,) = faults_of(
            "atof",
            [
                *SOUND,
                SOUND[2],
            ],
        )
        assert (fault.rule, fault.line, fault.message) == ("atof.event.repeated", 6, "as in line 3")
        assert _turns([*SOUND, SOUND[2]]) == _turns(SOUND)

    def test_of_two_starts_the_earlier_counts(self) -> None:
        late = {**SOUND[2], "timestamp": SOUND[2]["timestamp"] + 5, "data": [user("no")]}
        (fault,) = faults_of("atof", [SOUND[0], late, *SOUND[1:]])
        assert (fault.rule, fault.line) == ("atof.scope.repeated", 2)
        assert "no" not in _turns([SOUND[0], late, *SOUND[1:]])

    def test_marks_may_share_a_uuid(self) -> None:
        assert faults_of("atof", [*SOUND, mark("m", 0.6, "a", {"x": 2})]) == []

    def test_an_end_that_fits_a_start_of_another_uuid_is_a_mismatch(self) -> None:
        lost = {**SOUND[3], "uuid": "other"}
        (fault,) = faults_of("atof", [*SOUND[:2], {**SOUND[2], "name": "m"}, {**lost, "name": "m"}, SOUND[4]])
        assert (fault.rule, fault.path, fault.line) == ("atof.scope.uuid_mismatch", "/uuid", 4)
        assert "line 3" in fault.message and "l" in fault.message

    def test_an_end_without_any_start_is_told(self) -> None:
        (fault,) = faults_of("atof", [*SOUND, end("late", 8, "llm", "a", "x")])
        assert (fault.rule, fault.line) == ("atof.scope.end_without_start", 6)

    def test_a_scope_without_an_end_is_no_error(self) -> None:
        (fault,) = faults_of("atof", SOUND[:-1])
        assert (fault.rule, fault.severity, fault.line) == ("atof.scope.unfinished", "info", 1)

    def test_an_end_before_its_start_is_told(self) -> None:
        early = {**SOUND[3], "timestamp": SOUND[2]["timestamp"] - 1}
        (fault,) = faults_of("atof", [*SOUND[:3], early, SOUND[4]])
        assert (fault.rule, fault.path, fault.line) == ("atof.scope.order", "/timestamp", 4)

    @pytest.mark.parametrize(("field", "value"), [("name", "n"), ("category", "tool"), ("parent_uuid", None)])
    def test_what_start_and_end_differ_in_is_told(self, field: str, value: Any) -> None:
        changed = {**SOUND[3], field: value}
        found = [(fault.rule, fault.path) for fault in faults_of("atof", [*SOUND[:3], changed, SOUND[4]])]
        assert ("atof.scope.fields", f"/{field}") in found


class TestNesting:
    def test_a_circle_is_told_once_at_its_smallest_uuid_and_read_nevertheless(self) -> None:
        ring = [
            each
            for uuid, parent in (("p", "q"), ("q", "r"), ("r", "p"))
            for each in (begin(uuid, 1, "agent", parent), end(uuid, 9, "agent", parent))
        ]
        inside = llm("l", 2, [user("hi")], "yo", parent="q")
        assert [fault.rule for fault in faults_of("atof", [*ring, *inside])] == ["atof.parent.cycle"]
        assert "hi" in _turns([*ring, *inside])

    def test_a_scope_in_itself_is_a_circle(self) -> None:
        assert [fault.rule for fault in faults_of("atof", agent("a", 0, 1, parent="a"))] == ["atof.parent.cycle"]

    def test_scopes_nested_deeper_than_anything_that_runs_are_cut(self) -> None:
        deep = [begin(f"s{at}", at, "function", f"s{at - 1}" if at else None) for at in range(2 * DEEPEST + 1)]
        found = [fault.rule for fault in faults_of("atof", deep) if fault.severity == "error"]
        assert found == ["atof.parent.depth"] * 2
        assert outcomes_of("atof", [*deep, *llm("l", 300, [user("hi")], "yo", parent=f"s{2 * DEEPEST}")])

    def test_a_parent_that_is_not_there_is_told_once(self) -> None:
        stream = [{**each, "parent_uuid": "root"} for each in agent("a", 0, 9, *llm("l", 1, [user("x")], "y"))]
        found = [(fault.rule, fault.severity) for fault in faults_of("atof", stream)]
        assert found == [("atof.parent.unknown", "info")]


def test_damage_is_told_once_for_each_rule_where_a_stream_is_read() -> None:
    lines = as_lines(SOUND) + b"{\n[\n{"
    (outcome,) = outcomes_of("atof", lines)
    assert [(fault.rule, fault.line) for fault in outcome.faults] == [("atof.json.syntax", 6)]
    assert outcome.faults[0].message.endswith("2 more like it")


def test_a_tool_that_names_its_call_is_sound_and_one_that_does_not_is_warned_about() -> None:
    (warning, _) = faults_of("atof", agent("a", 0, 9, *tool("t", 1, {}, 1)))
    assert (warning.rule, warning.severity) == ("atof.profile.tool_call_id", "warning")
    assert faults_of("atof", agent("a", 0, 9, *tool("t", 1, {}, 1, call="c"))) == []


def _turns(events: list[Event]) -> str:
    reads = [outcome for outcome in outcomes_of("atof", events) if isinstance(outcome, Read)]
    return json.dumps([_said(read.episode.main) for read in reads])


def _said(thread: Thread) -> list[Any]:
    told = [[turn.role, turn.content, turn.place] for turn in thread.turns]
    return [told, *(_said(each) for each in thread.subagents)]
