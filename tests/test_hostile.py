"""No bytes crash: whatever lies in a capture directory or a rows file ends in a judgement that can be written."""

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.rebuild import Rebuild, RebuildTask, Shape, rebuild_rollout
from ng_capture.outputs.report import RolloutReport
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.outputs.verify import VerifyTask, verify_rollout
from ng_capture.verdicts.judge import Judging
from ng_capture.verdicts.policies import Policy
from ng_capture_cli.terminal import safe
from tests.support.forge import Files, Forge, in_lines, write_files
from tests.support.strategies import captures, forges

WAYS = [
    (Shape.ROLLOUTS, Judging(Policy.TERMINAL)),
    (Shape.ROWS, Judging(Policy.STRICT, infer_links=True)),
    (Shape.ROWS, Judging(Policy.ALL)),
]


def survive(files: Files, row: bytes | None = None) -> None:
    """Verify and rebuild a capture directory; whatever the bytes, it ends in a judgement that can be written."""
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory), files)
        listing = list_rollouts([directory])
        for shape, judging in WAYS:
            task = VerifyTask("r-1", listing.get("r-1"), row, judging)
            report = verify_rollout(task)
            assert isinstance(report, RolloutReport)
            msgspec.json.encode(report)
            for finding in report.findings:
                safe(f"{finding.file}: {finding.reason}: {finding.message}").encode()
            done = rebuild_rollout(RebuildTask(task, Rebuild(shape, judging)))
            for line in done.lines:
                json.loads(b"".join(line))
            msgspec.json.encode(done.receipt)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(
        ["\ud800", "resolved", "root", "r-1", "nrlre1:int8:1x1x1:AA==", 2**31, 2**63, 1e308, -1e308, 0.0]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


ROW_KEYS = ["response", "_ng_terminal_model_call_id", "terminal_response_id", "reward", "_ng_task_index", "mask_sample"]


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


@settings(max_examples=70, deadline=None)
@given(data=st.binary(max_size=200), compression=st.sampled_from(["", ".gz", ".zst"]))
def test_arbitrary_bytes_as_records_are_judged(data: bytes, compression: str) -> None:
    survive({f"r-1.tokens.jsonl{compression}": data})


@settings(max_examples=70, deadline=None)
@given(capture=captures("call whole end", max_faults=2), data=st.data())
def test_a_capture_with_some_bytes_changed_is_judged(capture: Any, data: st.DataObject) -> None:
    files = capture.files()
    name = data.draw(st.sampled_from(sorted(files)))
    changed = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(changed)))
        changed[place : place + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=2) | st.sampled_from([b"]", b"[", b",", b'"', b"{", b"}", b"-", b"9" * 20, b"\\", b"\n"])
        )
    survive(files | {name: bytes(changed)}, encoded(capture.row) if capture.row else None)


@settings(max_examples=70, deadline=None)
@given(values=st.lists(json_values, max_size=3))
def test_arbitrary_json_values_as_records_are_judged(values: list[object]) -> None:
    survive({"r-1.tokens.jsonl": in_lines(map(encoded, values))})


NASTY: dict[str, Any] = {
    "half a pair": "\ud800",
    "half a pair in a list": ["\ud800"],
    "half a pair as a key": {"\ud800": 1},
    "a great integer": 2**70,
    "a greater integer": 10**400,
    "a greater integer in a list": [10**400],
    "a negative integer": -(2**70),
    "a great float": 1e308,
    "an object": {"a": [None]},
    "a list of lists": [[], [[]]],
    "a control character": "\x00",
    "a number as text": "9" * 30,
    "true": True,
    "null": None,
}


@pytest.mark.parametrize("name", NASTY)
def test_any_field_of_a_record_may_hold_any_value(name: str) -> None:
    forge = Forge()
    first, second = forge.root([1], [2]), forge.calls[0].then([3], [4])
    for key in [*first.record(), "weight_version"]:
        survive({"r-1.tokens.jsonl": in_lines([encoded(first.record() | {key: NASTY[name]}), second.line()])})
        survive({"r-1.tokens.jsonl": in_lines([first.line(), encoded(second.record() | {key: NASTY[name]})])})


@pytest.mark.parametrize("name", NASTY)
def test_any_member_of_a_row_or_of_a_file_beside_the_records_may_hold_any_value(name: str) -> None:
    forge = Forge()
    answer = forge.root([1], [2]).then([3], [4])
    row, raw, state = forge.row(answer), answer.raw(), forge.state()
    for key in ROW_KEYS:
        survive(forge.files(), encoded(row | {key: NASTY[name]}))
    for key in row["response"]:
        survive(forge.files(), encoded(row | {"response": row["response"] | {key: NASTY[name]}}))
    for key in raw:
        survive(forge.files() | {"r-1.capture.jsonl": encoded(raw | {key: NASTY[name]}) + b"\n"})
    for key in state:
        survive(forge.files() | {"r-1.tokens.state.json": encoded(state | {key: NASTY[name]})})


@pytest.mark.parametrize("text", ["1e400", "-1e400", "9" * 5000, "[" * 2000 + "]" * 2000, "[" * 100_000, '"\\u0000"'])
def test_any_field_of_a_record_may_be_spelled_in_any_way(text: str) -> None:
    call = Forge().root([1], [2])
    for key in [*call.record(), "weight_version", "unknown"]:
        line = encoded(call.record() | {key: "<>"}).replace(b'"<>"', text.encode())
        survive({"r-1.tokens.jsonl": in_lines([line])})
        survive({"r-1.tokens.jsonl": in_lines([line.replace(text.encode(), f"[{text}]".encode())])})


@pytest.mark.parametrize("prompt", [b"[01]", b"[NaN]", b"[\\]", b"[1 2]", b"[-1]"])
@pytest.mark.parametrize("field", ["generation_token_ids", "generation_log_probs"])
def test_a_line_may_be_broken_in_two_places(prompt: bytes, field: str) -> None:
    line = Forge().root([1], [2], **{field: [2**31]}).line()
    survive(
        {"r-1.tokens.jsonl": in_lines([line.replace(b'"prompt_token_ids":[1]', b'"prompt_token_ids":%b' % prompt)])}
    )


@settings(max_examples=70, deadline=None)
@given(forge=forges(max_calls=3), data=st.data())
def test_records_with_arbitrary_values_in_their_fields_are_judged(forge: Forge, data: st.DataObject) -> None:
    lines = []
    for call in forge.calls:
        record = call.record()
        keys = data.draw(st.lists(st.sampled_from([*sorted(record), "weight_version"]), max_size=2))
        plausible = st.lists(json_values, max_size=3) | st.just(record)
        lines.append(encoded(record | {key: data.draw(json_values | plausible) for key in keys}))
    survive({"r-1.tokens.jsonl": in_lines(lines)})


BESIDE = ["r-1.tokens.state.json", "r-1.tokens.intents", "r-1.tokens.incomplete", "r-1.capture.jsonl"]


@settings(max_examples=70, deadline=None)
@given(name=st.sampled_from(BESIDE), content=st.binary(max_size=60) | json_values.map(encoded), data=st.data())
def test_arbitrary_content_in_the_files_beside_the_records_is_judged(
    name: str, content: bytes, data: st.DataObject
) -> None:
    forge = Forge()
    forge.root([1], [2]).then([3], [4])
    files = forge.files(raw=True)
    base = {"r-1.tokens.state.json": forge.state(), "r-1.capture.jsonl": forge.calls[0].raw()}.get(name)
    if base is not None and data.draw(st.booleans()):
        keys = data.draw(st.lists(st.sampled_from(sorted(base)), min_size=1, max_size=2))
        content = encoded(base | {key: data.draw(json_values) for key in keys})
    survive(files | {name: content})


@settings(max_examples=70, deadline=None)
@given(content=st.binary(max_size=60) | st.lists(json_values, max_size=2).map(lambda v: in_lines(map(encoded, v))))
def test_arbitrary_rows_files_are_read_and_their_faults_named(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "rows.jsonl")
        path.write_bytes(content)
        rows = RowsFile(str(path))
        lines = [line for line in io.BytesIO(content.removeprefix(b"\xef\xbb\xbf")) if line.strip()]
        assert len(list(rows.rollout_ids)) + len(rows.faults) == len(lines)


@pytest.mark.parametrize(
    "key", ["_ng_rollout_id", "_ng_task_index", "_ng_rollout_index", "_ng_attempt_index", "reward"]
)
def test_a_row_that_names_its_rollout_in_any_way_is_read_or_its_fault_named(key: str, tmp_path: Path) -> None:
    texts = ["1e400", "-1e400", "1" * 400, "9" * 5000, "[[1]]", '{"a":1}', '"\\ud800"', "true", '" 7 "', "1.5", '""']
    row = {"_ng_task_index": 1, "_ng_rollout_index": 2, "_ng_attempt_index": 3, key: "<>"}
    for text in texts:
        path = tmp_path / "rows.jsonl"
        path.write_bytes(encoded(row).replace(b'"<>"', text.encode()) + b"\n")
        rows = RowsFile(str(path))
        assert len(list(rows.rollout_ids)) + len(rows.faults) == 1


@settings(max_examples=70, deadline=None)
@given(data=st.data())
def test_finished_rows_with_arbitrary_values_are_judged_and_filled(data: st.DataObject) -> None:
    forge = Forge()
    answer = forge.root([1], [2]).then([3], [4])
    row = forge.row(answer)
    row |= {key: data.draw(json_values) for key in data.draw(st.sets(st.sampled_from(ROW_KEYS), max_size=2))}
    if isinstance(row.get("response"), dict) and data.draw(st.booleans()):
        row["response"]["output"] = data.draw(st.lists(json_values | st.just(answer.output[0]), max_size=2))
    survive(forge.files(), encoded(row))
