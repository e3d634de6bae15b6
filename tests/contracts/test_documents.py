"""One value a line, or one alone over several lines; what is broken has its line."""

from pathlib import Path

import pytest

from ng_capture.contracts.documents import Found, values_in
from ng_capture.contracts.sources import Source


def found(folder: Path, data: bytes) -> list[Found]:
    (folder / "x.jsonl").write_bytes(data)
    return list(values_in(Source(str(folder / "x.jsonl")), "x"))


def told(folder: Path, data: bytes) -> list[tuple[object, str, list[str]]]:
    return [(each.value, each.place, [fault.rule for fault in each.faults]) for each in found(folder, data)]


def test_every_line_is_a_value_with_its_number_and_its_text(tmp_path: Path) -> None:
    assert told(tmp_path, b'\n{"a":1}\n \n[2]\n') == [({"a": 1}, "line 2", []), ([2], "line 4", [])]
    assert [each.data for each in found(tmp_path, b"[1]\n[2]")] == [b"[1]\n", b"[2]"]


def test_one_value_over_several_lines_is_one(tmp_path: Path) -> None:
    data = b'{\n "a": 1\n}\n'
    assert told(tmp_path, data) == [({"a": 1}, "", [])]
    assert found(tmp_path, data)[0].data == data


def test_a_broken_line_is_told_and_those_after_it_are_read(tmp_path: Path) -> None:
    assert told(tmp_path, b'{"a":\n{"a":1}\n{"a"') == [
        (None, "line 1", ["x.json.syntax"]),
        ({"a": 1}, "line 2", []),
        (None, "line 3", ["x.json.syntax"]),
    ]


def test_the_text_of_a_stream_is_a_response_as_long_as_it_is_text(tmp_path: Path) -> None:
    data = 'data: {"a":"é"}\n\ndata: [DONE]\n'.encode()
    assert told(tmp_path, data) == [({"response": data.decode()}, "", [])]
    (broken,) = found(tmp_path, b"data: \xff\n\n")
    assert broken.value is None and "no UTF-8" in broken.faults[0].message


@pytest.mark.parametrize("data", [b"", b" \n\n"])
def test_nothing_is_a_fault(tmp_path: Path, data: bytes) -> None:
    (only,) = found(tmp_path, data)
    assert (only.value, only.place) == (None, "") and "empty" in only.faults[0].message


@pytest.mark.parametrize(
    ("data", "certain"),
    [(b"[1]", True), (b'{"a":1,"a":2}', False), (b"[NaN]", False), (rb'["\ud800"]', True), (b"[1", False)],
)
def test_a_value_is_certain_where_all_readers_agree_on_it(tmp_path: Path, data: bytes, certain: bool) -> None:
    assert found(tmp_path, data)[0].certain is certain
