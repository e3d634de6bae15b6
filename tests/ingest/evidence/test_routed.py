"""Routed experts: found at every place, their shape told, their value passed on as it is."""

import base64
from typing import Any

import pytest

from ng_capture.ingest.normalise import normalise
from ng_capture.ingest.normalised import NormalisedCall, Routed
from tests.support.engines import BUNDLE, chat
from tests.support.forge import Row
from tests.support.raw_exchanges import answered

NESTED = [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]
ENVELOPE = "nrlre1:int8:4x1x2:AAECAwQFBgc="


def array_file(shape: str) -> str:
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return base64.b64encode(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(8)).decode()


def only(response: Row) -> NormalisedCall:
    [call] = normalise(answered(response))
    return call


def with_value(value: object) -> NormalisedCall:
    return only(chat({"message": {**BUNDLE, "routed_experts": value}}))


PLACES: dict[str, Row] = {
    "message": chat({"message": {**BUNDLE, "routed_experts": ENVELOPE}}),
    "item": {"output": [{"type": "message", **BUNDLE, "routed_experts": ENVELOPE}]},
    "choice": chat({"message": BUNDLE, "routed_experts": NESTED}),
    "meta info": chat({"message": BUNDLE, "meta_info": {"routed_experts": NESTED}}),
    "SGLang's extension": chat({"message": BUNDLE}, sglext={"routed_experts": NESTED}),
    "Dynamo": chat({"message": BUNDLE}, nvext={"routed_experts": {"data": "x", "shape": [4, 1, 2]}}),
    "Megatron": chat({"message": BUNDLE, "prompt_moe_topk_indices": NESTED[:2], "moe_topk_indices": NESTED[2:]}),
    "vLLM": chat({"message": BUNDLE, "routed_experts": array_file("(4, 1, 2)")}),
}


@pytest.mark.parametrize("name", PLACES)
def test_routed_experts_are_found_at_every_place(name: str) -> None:
    call = only(PLACES[name])
    assert (call.routed, call.warnings, call.trainable) == (Routed(4, 1, 2), (), True)
    assert call.routed_experts is not None


def test_a_row_less_is_told() -> None:
    for value in (NESTED[:3], "nrlre1:int8:3x1x2:AAECAwQF", array_file("(3, 1, 2)")):
        call = with_value(value)
        assert (call.routed, call.warnings) == (Routed(3, 1, 2), ("routed_experts_one_short",))
        assert call.routed_experts == value


MALFORMED: list[Any] = [
    *([], {}, "", "x", 5, True, NESTED[:2], [*NESTED, [[8, 9]]], [[[1, 2]], [[1]], [[1, 2]], [[1, 2]]]),
    *([[[1, 2]], [], [[1, 2]], [[1, 2]]], [[], [], [], []], "nrlre1:int8:4x1x2:AA==", {"shape": [4, 1]}),
    *({"shape": [4, 1, 0]}, {"shape": [True, 1, 2]}, array_file("(4, 1)"), array_file("("), array_file("5")),
    *(base64.b64encode(bytes(32)).decode(), base64.b64encode(b"\x93NUMPY").decode(), "\u00e9"),
]


@pytest.mark.parametrize("value", MALFORMED, ids=lambda value: repr(value)[:30])
def test_what_fits_no_shape_is_dropped_and_takes_nothing_away(value: object) -> None:
    call = with_value(value)
    assert (call.routed, call.routed_experts, call.warnings) == (None, None, ("routed_experts_malformed",))
    assert call.trainable
