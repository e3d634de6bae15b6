"""Routed experts: one row a token, as an envelope or a nested list (policies-and-exports.md, case T40)."""

import base64
from array import array
from pathlib import Path
from typing import Any

import pytest

from ng_capture.records.routed_experts import decode_routed_experts
from tests.support.forge import Forge
from tests.support.judging import judged, rows_of


def envelope(rows: list[list[list[int]]], dtype: str = "int16", code: str = "h") -> str:
    shape = f"{len(rows)}x{len(rows[0])}x{len(rows[0][0])}"
    data = array(code, [value for row in rows for layer in row for value in layer]).tobytes()
    return f"nrlre1:{dtype}:{shape}:{base64.b64encode(data).decode()}"


ROWS = [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]


def test_an_envelope_and_nested_lists_hold_the_same_rows() -> None:
    for value in (ROWS, envelope(ROWS), envelope(ROWS, "uint8", "B")):
        decoded = decode_routed_experts(value)
        assert decoded is not None and decoded.rows == ROWS


@pytest.mark.parametrize(
    "value",
    ["nrlre1:int16:1x1x1:AA==", "nrlre1:float8:1x1x1:AAA=", "nrlre1:int16:1x1x1:!", "other", 7, [[1]], {}, [[["x"]]]],
)
def test_what_fits_no_shape_is_no_experts(value: Any) -> None:
    assert decode_routed_experts(value) is None


def test_no_choice_a_layer_is_empty_rows() -> None:
    decoded = decode_routed_experts("nrlre1:int16:0x1x0:")
    assert decoded is not None and decoded.rows == []


def row(first: int, count: int) -> list[list[list[int]]]:
    return [[[first + index]] for index in range(count)]


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("short", [0, 1])
def test_the_row_of_a_turns_last_token_comes_from_the_next_prompt(tmp_path: Path, delta: bool, short: int) -> None:
    forge = Forge(delta=delta)
    first = forge.root([1, 2], [3], id="a", routed_experts=row(10, 3 - short))
    first.then([4], [5], id="b", routed_experts=row(20, 5 - short))
    forge.write(tmp_path)
    (made,) = rows_of(judged(tmp_path))
    assert made["routed_experts"] == [[[10]], [[11]], [[22]], [[23]], None]


def test_where_some_calls_have_none_all_rows_are_missing_and_it_is_told(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a", routed_experts=row(10, 3)).then([4], [5], id="b")
    forge.write(tmp_path)
    judgement = judged(tmp_path)
    assert rows_of(judgement)[0]["routed_experts"] == [None] * 5
    assert [f.calls for f in judgement.findings if f.reason == "routed_experts_missing"] == [("b",)]


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize(
    ("rows", "reason"), [(9, "routed_experts_malformed"), (4, "routed_experts_one_short"), (5, None)]
)
def test_another_number_of_rows_than_tokens_is_told(tmp_path: Path, delta: bool, rows: int, reason: str | None) -> None:
    forge = Forge(delta=delta)
    first = forge.root([1, 2], [3], id="a", routed_experts=row(10, 3))
    first.then([4], [5], id="b", routed_experts=row(20, rows))
    forge.write(tmp_path)
    told = {f.reason for f in judged(tmp_path).findings if f.call == "b"}
    assert told == ({reason} if reason else set())
