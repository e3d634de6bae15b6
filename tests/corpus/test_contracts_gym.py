"""Rows, Responses and profiles on real files, and against what Gym 0.7.0 itself made of tiny ones."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.atof.contract import ATOF
from ng_capture.contracts.dialects.responses import RESPONSES as DIALECT
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Options, Profile
from ng_capture.contracts.items.tokens import TOKEN_FIELDS
from ng_capture.contracts.recognition import head_of
from ng_capture.contracts.responses.contract import RESPONSES
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from ng_capture.contracts.verifiers.contract import VERIFIERS
from ng_capture.records.usage import decode_usage
from tests.support.converting import converted, file_converted, in_lines
from tests.support.corpus import corpus_folder, json_lines
from tests.support.items import row

CORPUS = corpus_folder("contracts")
ORACLE = CORPUS / "oracle"
ROLLOUTS = sorted((CORPUS / "gym_rollouts").iterdir())
HARBOR = Options(profile=Profile.HARBOR)


def cases(name: str) -> list[Any]:
    return [pytest.param(case, id=case["case"]) for case in json_lines(ORACLE / f"{name}.jsonl")]


def faults_of(*rows: object) -> list[Fault]:
    assert GYM.reader is not None and GYM.reader.validate is not None
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(in_lines(rows).encode("utf-8", "surrogatepass"))
        file.flush()
        return list(GYM.reader.validate(Source(file.name)))


# --- the real rows


def manifest() -> dict[str, str]:
    """What Gym's own models say of each file of rows."""
    table = (CORPUS / "MANIFEST.md").read_text()
    rows = re.findall(r"^\| gym_rollouts/(\S+) \|(.*)$", table, re.MULTILINE)
    return {name: cells.split("|")[5] for name, cells in rows}


@pytest.mark.parametrize("path", ROLLOUTS, ids=lambda path: path.name)
def test_real_rows_are_valid_as_gym_says_and_older_ones_are_warned_of(path: Path) -> None:
    verdict, rows = manifest()[path.name], json_lines(path)
    assert f"response ok {len(rows)} bad 0" in verdict
    faults = faults_of(*rows)
    assert not [fault for fault in faults if fault.severity == "error"]
    older = {fault.line for fault in faults if fault.rule == "gym.params.null"}
    assert len(rows) - len(older) == int(re.findall(r"params ok (\d+)", verdict)[0])


@pytest.mark.parametrize("path", ROLLOUTS, ids=lambda path: path.name)
def test_a_real_row_read_and_written_is_the_row(path: Path) -> None:
    rows = json_lines(path)
    done = converted(in_lines(rows), GYM, GYM)
    assert len(done.values) == len(rows)
    for before, after in zip(rows, done.values, strict=True):
        del after["ng_capture"]
        if "tokens_placeholder" in done.codes:
            before, after = without_tokens(before), without_tokens(after)
        assert told(after) == told(before)


def test_only_what_says_that_there_are_no_tokens_is_left_out_of_a_real_row() -> None:
    dropping = {path.name: converted(path.read_text(), GYM, GYM).losses for path in ROLLOUTS}
    lost = {name: {loss.code for loss in losses if loss.severity == "dropped"} for name, losses in dropping.items()}
    assert {name: codes for name, codes in lost.items() if codes} == {
        "automationbench.jsonl": {"tokens_placeholder"},
        "hermes_math.jsonl": {"tokens_placeholder"},
    }


@pytest.mark.parametrize("path", ROLLOUTS, ids=lambda path: path.name)
def test_the_output_of_a_real_row_comes_back_from_atif_item_by_item(path: Path) -> None:
    rows = json_lines(path)
    for before in rows:
        there = converted(before, GYM, ATIF, Options(keep_row_extras=True))
        back = converted(there.value, ATIF, GYM)
        assert plain(back.value["response"]["output"]) == plain(before["response"]["output"])
        assert told({**back.value["response"], "output": []}) == told({**before["response"], "output": []})


@pytest.mark.parametrize("path", ROLLOUTS, ids=lambda path: path.name)
def test_the_output_of_a_real_row_comes_back_from_responses_item_by_item(path: Path) -> None:
    for before in json_lines(path):
        there = converted(before, GYM, RESPONSES)
        again = converted(there.value, RESPONSES, RESPONSES)
        assert again.lines == there.lines
        assert plain(there.value["response"]["output"]) == plain(before["response"]["output"])


def test_the_strict_profile_refuses_what_gym_could_not_see() -> None:
    path = CORPUS / "gym_rollouts" / "nemo_fabric_deepagents_reasoning_gym.jsonl"
    assert "ng_trajectory.gaps" in manifest()[path.name]
    done = converted(path.read_text(), GYM, ATIF, Options(profile=Profile.STRICT, agent_version="1"))
    assert not done.lines
    assert "gym.export.gaps" in done.rules


def plain(items: list[Any]) -> list[Any]:
    return [{key: value for key, value in item.items() if key not in TOKEN_FIELDS} for item in items]


def without_tokens(value: dict[str, Any]) -> dict[str, Any]:
    response = value["response"]
    return {**value, "response": {**response, "output": plain(response["output"])}}


def told(value: dict[str, Any]) -> dict[str, Any]:
    """A row without parameters that say nothing, and a text as the input of a request as the message that it is."""
    asked = value.get("responses_create_params")
    if asked is None:
        return value
    said = {key: each for key, each in asked.items() if each is not None and (key, each) != ("tools", [])}
    return {**value, "responses_create_params": said}


SOURCES = [ATIF, ATOF, GYM, VERIFIERS]
FILES = [
    path
    for folder in ("atif/valid", "atof", "gym_rollouts", "verifiers")
    for path in (CORPUS / folder).rglob("*.json*")
]


@pytest.mark.parametrize("profile", [Profile.NATIVE, Profile.HARBOR])
def test_a_row_that_is_written_of_anything_real_is_one_that_gym_takes(profile: Profile) -> None:
    rows = list[Any]()
    for path in FILES:
        for source in SOURCES:
            assert source.reader is not None
            if source.reader.recognises(head_of(Source(str(path)))):
                rows += file_converted(path, source, GYM, Options(profile=profile)).values
                break
    assert len(rows) > 150
    assert not [fault for fault in faults_of(*rows) if fault.severity == "error"]


# --- Gym's mapping of Harbor trajectories

PEER_FAILS = {
    "explicit null observation": None,
    "final_metrics null": None,
    "final_metrics with null totals": None,
    "content parts message": "gym.harbor.message",
}
"""Where Gym's mapping ends in a traceback: what ours refuses, or None where it writes a row."""

PYTHON_IN_TEXT = {"content parts message with reasoning": "gym.harbor.message"}
"""Where Gym's mapping writes a Python list into a text: what ours refuses."""


@pytest.mark.parametrize("case", cases("harbor_atif_to_responses"))
def test_the_harbor_profile_is_gyms_mapping(case: dict[str, Any]) -> None:
    done = converted(case["input"], ATIF, GYM, HARBOR)
    refused = {**PEER_FAILS, **PYTHON_IN_TEXT}.get(case["case"])
    assert ("error" in case) == (case["case"] in PEER_FAILS)
    if refused is not None:
        assert done.rules == {refused}
        return
    row = done.value
    if "error" in case:
        assert row["response"]["output"]
        return
    assert bare(row["responses_create_params"]["input"]) == bare(case["output"]["input"])
    assert bare(row["response"]["output"]) == bare(case["output"]["output"])
    if case["input"].get("final_metrics"):
        assert row["response"]["usage"] == case["output"]["usage"]
    else:
        # the peer takes the counts of the trial, which no trajectory holds
        assert row["response"]["usage"]["total_tokens"] == 0
        assert "usage_unknown" in done.codes


GOLDEN = {
    "ctxsum": "harbor-0.9.0-terminus2-ctxsum/trajectory.json",
    "linear": "harbor-0.3.0-terminus2-linear/trajectory.json",
    "linear.cont-1": "harbor-0.3.0-terminus2-linear/trajectory.cont-1.json",
    "nat-exmp02": "nat-exmp02.json",
    "openhands": "harbor-0.9.0-openhands.json",
    "relay_chat_tools": "relay_chat_tools.json",
    "timeout": "harbor-0.3.0-terminus2-timeout.json",
}


def test_every_golden_row_of_the_corpus_is_compared() -> None:
    assert {path.name.removesuffix(".responses.json") for path in (ORACLE / "harbor_golden").iterdir()} == set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_harbor_profile_is_gyms_mapping_of_real_trajectories(name: str) -> None:
    wanted = json.loads((ORACLE / "harbor_golden" / f"{name}.responses.json").read_text())
    row = converted((CORPUS / "atif" / "valid" / GOLDEN[name]).read_text(), ATIF, GYM, HARBOR).value
    assert bare(row["responses_create_params"]["input"]) == bare(wanted["input"])
    assert bare(row["response"]["output"]) == bare(wanted["output"])
    if any(wanted["usage"][key] for key in ("input_tokens", "output_tokens")):
        assert row["response"]["usage"] == wanted["usage"]


RANDOM_ID = re.compile(r"^(cht_|fc_|fco_|call_)([0-9a-f]{24}|<rand>)$")


def bare(value: Any) -> Any:
    """A value but for random ids, and for what Gym's dump leaves out or writes as null: defaults."""
    if isinstance(value, dict):
        return {key: bare(each) for key, each in value.items() if each is not None and key != "status"}
    if isinstance(value, list):
        return [bare(each) for each in value]
    return (
        re.sub(r"^(cht_|fc_|fco_|call_)([0-9a-f]{24}|<rand>)$", r"\1<id>", value) if isinstance(value, str) else value
    )


# --- Gym's import and export of ATIF

IMPORT_REFUSES = {
    "unlinked result": "gym.strict.result_unlinked",
    "missing result": "gym.strict.result_missing",
    "token ids": "gym.strict.tokens",
    "later user step": "gym.strict.later_turn",
    "total_steps mismatch": "gym.strict.total_steps",
}


GYM_DEFAULTS = {"object": "response", "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}


@pytest.mark.parametrize("case", cases("gym_strict_atif_to_response"))
def test_the_strict_profile_takes_and_makes_what_gyms_import_does(case: dict[str, Any]) -> None:
    done = converted(case["input"], ATIF, GYM, Options(profile=Profile.STRICT))
    refused = IMPORT_REFUSES.get(case["case"])
    assert ("error" in case) == (refused is not None)
    if refused is not None:
        assert refused in done.rules
    else:
        # the peer's dump leaves out what its model has as a default
        assert done.value["response"] == {**GYM_DEFAULTS, **case["output"]}


EXPORT_REFUSES = {
    "no ng_trajectory": "gym.export.trajectory",
    "invocation failed": "gym.export.invocations",
    "later user turn": "gym.export.later_turn",
    "missing tool record": "gym.export.tool_record",
    "training tokens": "gym.export.tokens",
    "arguments not an object": "gym.export.arguments",
    "finish reason length": "gym.export.finish",
    "encrypted reasoning": "gym.export.reasoning",
}

OURS = {
    r"/extra/nemo_gym/exporter/(name|version)": "who wrote it",
    r"(/.*)?/extra(/ng_capture)?": "what ng-capture keeps so that the row comes back, under a key of its own",
    r"/final_metrics/extra": "totals that ATIF has no field for",
    r"/steps/\d+/message": "a single part of text is a text (contracts.md 3.4, 5)",
}
"""Where our export of a row differs from Gym's, and why."""


@pytest.mark.parametrize("case", cases("gym_ng_trajectory_to_atif"))
def test_the_strict_profile_takes_and_makes_what_gyms_export_does(case: dict[str, Any]) -> None:
    told = case["options"]
    options = Options(profile=Profile.STRICT, session_id=told["session_id"], agent_version=told["agent_version"])
    done = converted(case["input"], GYM, ATIF, options)
    refused = EXPORT_REFUSES.get(case["case"])
    assert ("error" in case) == (refused is not None)
    if refused is not None:
        assert refused in done.rules
        assert not done.lines
        return
    for path, ours, theirs in differences(done.value, case["output"]):
        assert any(re.fullmatch(place, path) for place in OURS), (path, ours, theirs)
        if path.endswith("/message"):
            assert [ours] == [part["text"] for part in theirs]
        elif "/exporter/" not in path:
            assert theirs is None


@pytest.mark.parametrize("case", cases("gym_ng_trajectory_to_atif"))
def test_what_gym_refuses_to_export_is_converted_with_its_losses(case: dict[str, Any]) -> None:
    done = converted(case["input"], GYM, ATIF)
    saw_nothing = case["case"] == "no ng_trajectory"
    assert [step["source"] for step in done.value["steps"]][:2] == (["user"] if saw_nothing else ["user", "agent"])


def differences(ours: Any, theirs: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Every place where two values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = ours.keys() | theirs.keys()
        found = [differences(ours.get(key), theirs.get(key), f"{path}/{key}") for key in sorted(keys)]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        found = [differences(one, other, f"{path}/{at}") for at, (one, other) in pairs]
    else:
        return [] if ours == theirs else [(path, ours, theirs)]
    return [each for group in found for each in group]


# --- Gym's models

TOLERATED = {"request: tool_choice null", "request: parallel_tool_calls null"}
"""What Gym's request refuses and older rows have: a warning here."""


@pytest.mark.parametrize("case", cases("gym_models"))
def test_rows_are_judged_as_gyms_models_judge_them(case: dict[str, Any]) -> None:
    value = case["input"]
    whole = row(value) if isinstance(value, list) else {**row(), "responses_create_params": value}
    faults = faults_of(whole)
    errors = [fault for fault in faults if fault.severity == "error"]
    assert bool(errors) == ("error" in case and case["case"] not in TOLERATED), errors
    assert (case["case"] in TOLERATED) == any(fault.rule == "gym.params.null" for fault in faults)


@pytest.mark.parametrize("case", [case for case in cases("gym_models") if "output" in case.values[0]])
def test_what_gyms_models_drop_without_a_word_is_warned_of_and_kept(case: dict[str, Any]) -> None:
    [item], [kept] = case["input"], case["output"]
    dropped = item.keys() - kept["item"].keys()
    warned = {f.path.rsplit("/", 1)[-1] for f in faults_of(row([item])) if f.rule == "gym.item.field_unknown"}
    assert warned == dropped
    if "tokens" not in case["case"]:
        assert converted(row([item]), GYM, GYM).value["response"]["output"] == [item]


@pytest.mark.parametrize("case", cases("token_stats"))
def test_tokens_are_counted_as_gym_counts_them(case: dict[str, Any]) -> None:
    usage, wanted = decode_usage(case["input"]), case["output"]["stats"]
    assert {name: getattr(usage, name) for name in wanted} == wanted
    assert usage.cached_tokens == case["output"]["cache_signal"][1]


@pytest.mark.parametrize(
    "case", [case for case in cases("model_call_record") if case.id.startswith(("respo", "incom"))]
)
def test_a_response_tells_of_its_call_what_gym_records(case: dict[str, Any]) -> None:
    turn, wanted = DIALECT.answered(case["input"]["response"], Options()).turn, case["output"]
    if turn is None:
        assert not case["input"]["response"]["output"]
        assert "tokens_in" not in wanted
        return
    assert turn.call is not None
    assert turn.call.response_id == wanted["response_id"]
    assert turn.call.model == wanted["model"]
    assert turn.call.usage.tokens_in == wanted["tokens_in"]
    assert turn.call.usage.tokens_out == wanted["tokens_out"]
    assert turn.call.usage.tokens_reasoning == wanted["tokens_reasoning"]
    assert "\n".join(text for each in turn.thoughts for text in each.texts) == wanted["reasoning_content"]
    told = [{"call_id": each.call_id, "name": each.name, "arguments": each.value} for each in turn.calls]
    assert told == wanted["tool_calls"]


@pytest.mark.parametrize("path", ROLLOUTS, ids=lambda path: path.name)
def test_every_call_of_a_real_row_that_nothing_answers_is_told(path: Path) -> None:
    open_calls = 0
    for each in json_lines(path):
        items = each["response"]["output"]
        answered = {item["call_id"] for item in items if item["type"] == "function_call_output"}
        open_calls += sum(item["type"] == "function_call" and item["call_id"] not in answered for item in items)
    if "ng_trajectory" not in each:
        losses = converted(path.read_text(), GYM, GYM).losses
        assert sum(loss.count for loss in losses if loss.code == "call_without_output") == open_calls
