"""`reason`, `schema`, `--version`, `--help`, and what the commands load."""

import json
from pathlib import Path

import pytest

from ng_capture import __version__
from ng_capture.verdicts.reasons import REASONS
from tests.support.command import run
from tests.support.loading import loaded_by

HEAVY = {"polars", "pyarrow", "transformers", "numpy", "tokenizers"}
# what reads and writes shapes, gauges and colored help
NOT_FOR_A_SCREEN = HEAVY | {"pydantic", "prometheus_client", "rich", "pygments", "zstandard"}


def test_a_reason_is_explained() -> None:
    done = run("reason", "prefix_mismatch")
    assert done.code == 0
    assert REASONS["prefix_mismatch"].meaning in done.out and REASONS["prefix_mismatch"].what_to_do in done.out


def test_all_reasons_are_listed() -> None:
    printed = run("reason").out
    assert all(f"  {name} " in printed for name in REASONS)


def test_an_unknown_reason_is_wrong_use() -> None:
    done = run("reason", "no_such_thing")
    assert (done.code, done.err) == (2, "ng-capture: no_such_thing: no such reason\nhint: ng-capture reason\n")


def test_a_schema_is_printed() -> None:
    assert json.loads(run("schema", "receipt").out)["title"] == "ReceiptFile"
    assert "training-row" in run("schema").out
    assert run("schema", "no-such-thing").code == 2


def test_the_schemas_of_the_repository_are_those_of_the_code(tmp_path: Path) -> None:
    assert run("schema", "--out", tmp_path).code == 0
    stored = Path(__file__).parents[2] / "schemas"
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in stored.iterdir()}


def test_the_version_is_told() -> None:
    assert run("--version").out == f"ng-capture {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["verify", "fixtures/capture"], ["rebuild", "--help"]])
def test_columnar_and_tokenizer_libraries_are_loaded_only_where_needed(arguments: list[str]) -> None:
    assert not loaded_by(*arguments) & HEAVY


@pytest.mark.parametrize("options", [(), ("--by", "task", "--max-mask-fraction", "0.1"), ("-f", "json")])
def test_health_of_a_small_directory_loads_nothing_that_is_slow(options: tuple[str, ...]) -> None:
    assert not loaded_by("health", "fixtures/capture", *options) & NOT_FOR_A_SCREEN
