"""A finished row that is filled keeps every value that is not replaced, byte for byte (capture-files.md 6.3)."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.rebuild import Rebuild, RebuildTask, Shape, rebuild_rollout
from ng_capture.outputs.verify import VerifyTask
from ng_capture.verdicts.judge import Judging
from tests.support.forge import Forge

REPLACED = {"response", "_ng_token_capture", "mask_sample"}

FORGE = Forge()
ANSWER = FORGE.root([1, 2], [3]).then([4], [5])
BROKEN = Forge()
BROKEN.root([1, 2], [3]).broken([9], [5])

numbers = [
    "0",
    "-0",
    "1.10",
    "1.0",
    "-0.0",
    "1e5",
    "1E+2",
    "0.1000",
    "1e-320",
    "12345678901234567890123",
    "9007199254740993",
]
texts = [
    '""',
    '"\\u0041"',
    '"\\/"',
    '"\\u00e9"',
    '"é"',
    '"\\ud83d\\ude00"',
    '"😀"',
    '"\\b\\t"',
    '"\\u2028"',
    '"\\u007f"',
]
scalars = st.sampled_from([*numbers, *texts, "true", "false", "null"])
spaces = st.sampled_from(["", "", " ", "\t "])
keys = st.sampled_from(
    ['"x"', '"reward"', '"verifier"', '"a b"', '"\\u0061"', '"é"', '"_ng_task_index"', '"mask_samples"']
)


def composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    item = st.builds("{}{}{}".format, spaces, inner, spaces)
    member = st.builds("{}{}{}:{}".format, spaces, keys, spaces, item)
    arrays = st.lists(item, max_size=3).map(lambda items: f"[{','.join(items)}]")
    return arrays | st.lists(member, max_size=3).map(lambda members: f"{{{','.join(members)}}}")


values = st.recursive(scalars, composed, max_leaves=6)


def members(text: str) -> dict[str, str]:
    """Key and spelled value of every member of an object."""
    decoder, found, at = json.JSONDecoder(), {}, text.index("{") + 1
    while (at := _skip(text, at)) < len(text) and text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        first = _skip(text, text.index(":", at) + 1)
        _, at = decoder.raw_decode(text, first)
        found[key] = text[first:at]
        at = _skip(text, at)
        at += text[at] == ","
    return found


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def filled(forge: Forge, row: str) -> str:
    """The row as `rebuild --rollouts` writes it."""
    with tempfile.TemporaryDirectory() as directory:
        forge.write(Path(directory))
        files = list_rollouts([directory]).get("r-1")
        task = VerifyTask("r-1", files, row.encode(), Judging())
        (line,) = rebuild_rollout(RebuildTask(task, Rebuild(Shape.ROLLOUTS, task.judging))).lines
    return b"".join(line).decode()


@st.composite
def rows(draw: Any) -> str:
    """A finished row in any spelling; its response has members of its own."""
    spelled = draw(st.lists(st.tuples(keys, values), max_size=4, unique_by=lambda member: json.loads(member[0])))
    response = (
        json.dumps(FORGE.row(ANSWER)["response"])[:-1] + f', "usage" : {draw(values)} ,"created":{draw(values)}}}'
    )
    spelled += [('"_ng_rollout_id"', '"r-1"'), ('"response"', response)]
    text = ",".join(
        f"{draw(spaces)}{key}{draw(spaces)}:{draw(spaces)}{value}" for key, value in draw(st.permutations(spelled))
    )
    return f"{draw(spaces)}{{{text}{draw(spaces)}}}"


@settings(max_examples=60, deadline=None)
@given(row=rows(), forge=st.sampled_from([FORGE, BROKEN]))
def test_every_value_that_is_not_replaced_keeps_its_bytes(row: str, forge: Forge) -> None:
    before, after = members(row), members(filled(forge, row))
    assert {key: after[key] for key in before if key not in REPLACED} == {
        key: value for key, value in before.items() if key not in REPLACED
    }
    assert set(after) - set(before) <= REPLACED
    masked = forge is BROKEN
    assert after.get("mask_sample") == ("true" if masked else None)
    inner, outer = members(before["response"]), members(after["response"])
    assert {key: outer[key] for key in inner if key != "output"} == {
        key: value for key, value in inner.items() if key != "output"
    }
    assert set(outer) == set(inner)


@settings(max_examples=60, deadline=None)
@given(row=rows())
def test_a_row_is_filled_with_the_tokens_of_its_scored_call(row: str) -> None:
    items = json.loads(members(filled(FORGE, row))["response"])["output"]
    assert [item["prompt_token_ids"] for item in items] == [[1, 2], [1, 2, 3, 4]]
    assert [item["generation_token_ids"] for item in items] == [[3], [5]]
    assert [item["generation_log_probs"] for item in items] == [call.log_probs for call in FORGE.calls]


@settings(max_examples=50, deadline=None)
@given(row=rows())
def test_a_row_that_carries_token_ids_stays_as_it_is(row: str) -> None:
    carried = row.replace('"role": "assistant"', '"role":"assistant", "generation_token_ids" :[ 7 ]')
    assert filled(FORGE, carried) == carried.strip()


@pytest.mark.parametrize("flag", ["false", "true", "null"])
def test_a_mask_that_a_row_came_with_is_never_taken_off(flag: str) -> None:
    row = json.dumps(FORGE.row(ANSWER))[:-1] + f',"mask_sample":{flag}}}'
    assert members(filled(FORGE, row))["mask_sample"] == flag


def test_a_lone_surrogate_in_a_row_costs_the_other_values_nothing() -> None:
    row = json.dumps(FORGE.row(ANSWER))[:-1] + ',"odd":"\\ud800","score":1.10,"big":12345678901234567890123}'
    before, after = members(row), members(filled(FORGE, row))
    assert {key: after[key] for key in before if key not in REPLACED} == {
        key: value for key, value in before.items() if key not in REPLACED
    }
