"""`ng_model_call_capture` as NeMo Gym attaches it."""

from pathlib import Path
from typing import Any

from ng_capture.files.listing import RolloutFiles, list_rollouts
from ng_capture.outputs.steps.attachment import attachment
from tests.support.command import strict_json
from tests.support.forge import Row
from tests.support.raw_calls import chat_call, says, user, write_capture


def attached(files: RolloutFiles | None) -> dict[str, Any]:
    told: dict[str, Any] = strict_json(attachment("r-1", files))
    return told


def written(directory: Path, rows: list[Row]) -> RolloutFiles:
    write_capture(directory, "r-1", rows)
    (files,) = list_rollouts([str(directory)])
    return files


def test_calls_are_attached_with_their_sums_and_without_gaps(tmp_path: Path) -> None:
    told = attached(written(tmp_path, [chat_call("a", [user("hello")], says("hi"), latency_ms=2.5)]))
    assert list(told) == ["rollout_id", "metrics", "calls"]
    assert list(told["metrics"]) == [
        *("tokens_in", "tokens_out", "tokens_reasoning", "tokens_total", "cached_tokens", "latency_total_ms"),
        "num_calls",
    ]
    assert (told["metrics"]["latency_total_ms"], told["metrics"]["num_calls"]) == (2.5, 1)
    assert [call["model_call_id"] for call in told["calls"]] == ["a"]
    assert not told["calls"][0].keys() & {"request", "response", "turn_index", "line"}


def test_without_raw_calls_there_is_a_gap() -> None:
    told = attached(None)
    assert (told["calls"], told["gaps"]) == ([], [{"code": "model_call_capture_no_records"}])
    assert told["metrics"]["num_calls"] == 0 and told["metrics"]["tokens_in"] is None


def test_damage_and_loss_are_gaps(tmp_path: Path) -> None:
    write_capture(tmp_path, "r-1", [chat_call("a", [user("hello")], says("hi"))])
    with (tmp_path / "r-1.capture.jsonl").open("ab") as file:
        file.write(b"{not json}\n")
    (tmp_path / "r-1.capture.incomplete").touch()
    (files,) = list_rollouts([str(tmp_path)])
    assert attached(files)["gaps"] == [
        {"code": "model_call_capture_records_unreadable", "detail": "count=1"},
        {"code": "model_call_capture_incomplete"},
    ]


def test_what_the_machine_cannot_read_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "r-1.capture.jsonl").mkdir()
    (files,) = list_rollouts([str(tmp_path)])
    told = attached(files)
    assert (told["calls"], told["gaps"]) == ([], [{"code": "model_call_capture_unreadable"}])
