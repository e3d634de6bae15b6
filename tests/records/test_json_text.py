"""JSON as a file holds it: what is one value, and what is refused."""

from collections.abc import Callable

import msgspec
import orjson
import pytest

from ng_capture.records.json_text import decode_as, decode_json

SPELLED: dict[str, Callable[[int], bytes]] = {
    "lists": lambda levels: b"[" * levels + b"]" * levels,
    "objects": lambda levels: b'{"a":' * levels + b"1" + b"}" * levels,
    "beside half of a surrogate pair": lambda levels: b'["\\ud800",' + b"[" * (levels - 1) + b"]" * levels,
}


@pytest.mark.parametrize("levels", [2, 200, 254])
@pytest.mark.parametrize("spelled", SPELLED)
def test_what_is_read_can_be_told_and_written(spelled: str, levels: int) -> None:
    value, surrogate = decode_json(SPELLED[spelled](levels))
    assert str(value) and (surrogate or orjson.dumps(value))


@pytest.mark.parametrize("levels", [255, 900, 1020, 100_000])
@pytest.mark.parametrize("spelled", SPELLED)
def test_what_is_nested_deeper_than_it_could_be_written_is_refused(spelled: str, levels: int) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        decode_json(SPELLED[spelled](levels))


@pytest.mark.parametrize(
    "data", [b"[" + b"[]," * 500 + b"1]", b"[" + b'{"a":"\\ud800"},' * 500 + b"1]", b'"' + b"[" * 500 + b'"']
)
def test_many_brackets_are_no_depth(data: bytes) -> None:
    assert decode_json(data).value


def test_a_declared_type_is_not_read_from_what_is_nested_too_deeply() -> None:
    with pytest.raises(msgspec.DecodeError, match="nested too deeply"):
        decode_as(b"[" * 100_000, list[object])
