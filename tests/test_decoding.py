"""Spelling decides nothing: the quick way of decoding a line reads what the plain way reads.

`records/token_entry.py` cuts the prompt out of a line before it decodes the rest; here that is held against decoding
the whole line, for every spelling that JSON allows and for some that it does not.
"""

import json
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.files.listing import list_rollouts
from ng_capture.records import token_entry
from ng_capture.store.snapshot import read_snapshot
from tests.support.forge import Forge, canonical, write_files
from tests.support.strategies import forges

REQUIRED = ("rollout_id", "model_call_id", "prompt_token_ids", "generation_token_ids", "generation_log_probs")

spaces = st.sampled_from(["", "", "", " ", "\t", "\r", "  "])
odd_ids = ["0", "7", "12", "2147483647", "2147483648", "-1", "-0", "1.0", "1e1", "18446744073709551616", "1" * 25]
odd_ids += ['"7"', "null", "true", "[1]", "[]", "{}", '"]"', '","', "01", "1]", "NaN", "", "1 2", "\\", "+1", "é"]
odd_numbers = ["-0.5", "-1", "0", "-1e-7", "-0.50", "-1e400", "0.5", "null", '"x"', "-9999.0", "NaN", "[-0.5]", "", "-"]
odd_values = ["null", "1", '"x"', "[1,2]", '{"prompt_token_ids":[1]}', '"\\"prompt_token_ids\\":[9]"', '"\\ud800"']
odd_values += ['{"generation_token_ids":[3],"generation_log_probs":[-1]}', "1.50", "1e400", '"]"', '"é"', "[[[]]]"]
odd_keys = ["x", "prompt_token_ids", "generation_token_ids", "generation_log_probs", "prompt\\u005ftoken_ids"]
odd_keys += ["\\u0067eneration_token_ids", "generation_log\\u005fprobs", 'a\\"prompt_token_ids', "_token_ids", "é", ""]


@st.composite
def arrays(draw: Any, elements: st.SearchStrategy[str]) -> str:
    """The text of an array, well spelled or not."""
    inside = ",".join(draw(spaces) + element + draw(spaces) for element in draw(st.lists(elements, max_size=4)))
    return f"[{inside}]"


@st.composite
def spelled_lines(draw: Any) -> bytes:
    """A record in some spelling, with unknown and repeated keys, in any order."""
    call = draw(st.sampled_from(draw(forges()).calls))
    record = call.record()
    if draw(st.booleans()):
        kept = {*REQUIRED, *draw(st.sets(st.sampled_from(sorted(record))))}
        record = {key: value for key, value in record.items() if key in kept}
    members = [(key, json.dumps(value, separators=(",", ":"))) for key, value in record.items()]
    plain = st.sampled_from(["0", "7", "12", "2147483647"])
    for index, (key, _) in enumerate(members):
        if key.endswith("token_ids") and draw(st.booleans()):
            members[index] = key, draw(arrays(plain) | arrays(st.sampled_from(odd_ids)))
        if key == "generation_log_probs" and draw(st.integers(0, 3)) == 3:
            members[index] = key, draw(arrays(st.sampled_from(odd_numbers)))
    extra = st.tuples(st.sampled_from(odd_keys), st.sampled_from(odd_values) | arrays(plain))
    members += draw(st.lists(extra, max_size=2))
    between, after = draw(spaces), draw(spaces)
    ordered = draw(st.permutations(members) | st.just(sorted(members)))
    text = ",".join(f'{between}"{key}"{between}:{after}{value}' for key, value in ordered)
    return f"{{{text}}}".encode()


def read(data: bytes) -> Any:
    """Everything that is read from a line: as a file of its own, so that the prompt has found its place."""
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory), {"r-1.tokens.jsonl": data + b"\n"})
        snapshot = read_snapshot(list_rollouts([directory]).get("r-1"))
    return snapshot.defects, [
        {
            "fields": entry.fields,
            "rest": entry.rest,
            "generation": entry.generation,
            "generated": entry.generated,
            "log_probs": entry.log_probs,
            "faults": set(entry.faults),
            "prompt": None if entry.prompt is None else entry.prompt.values(),
            "full": None if entry.full is None else entry.full.values(),
            "suffix": entry.suffix,
        }
        for entry in snapshot.entries
    ]


@settings(max_examples=250, deadline=None)
@given(data=spelled_lines())
def test_cutting_the_prompt_out_of_a_line_reads_what_decoding_the_whole_line_reads(data: bytes) -> None:
    with mock.patch.object(token_entry, "_decode_cut", return_value=None):
        whole = read(data)
    assert read(data) == whole


@pytest.mark.parametrize("key", ["prompt_token_ids", "generation_token_ids", "generation_log_probs"])
@pytest.mark.parametrize("spelled", ['"{0}":', '"{0}" :', '"{0}"\t: ', '"{1}":'])
def test_a_token_key_that_stands_twice_is_told_however_it_is_spelled(key: str, spelled: str) -> None:
    line = Forge().root([1], [2]).line()
    escaped = key.replace("_", "\\u005f", 1)
    twice = b"{" + spelled.format(key, escaped).encode() + b"[9]," + line[1:]
    for data in (twice, line[:-1] + b"," + twice[1 : twice.index(b"]") + 1] + b"}"):
        defects, (entry,) = read(data)
        assert ("duplicate_key", key) in {(fault.reason, fault.detail) for fault in entry["faults"]}, defects


@settings(max_examples=60, deadline=None)
@given(forge=forges(), data=st.data())
def test_a_spaced_record_is_the_canonical_one(forge: Forge, data: st.DataObject) -> None:
    call = data.draw(st.sampled_from(forge.calls))
    record = call.record()
    shuffled = dict(data.draw(st.permutations(list(record.items()))))
    separators = data.draw(spaces) + "," + data.draw(spaces), data.draw(spaces) + ":" + data.draw(spaces)
    assert read(json.dumps(shuffled, separators=separators).encode()) == read(call.line())


@settings(max_examples=60, deadline=None)
@given(forge=forges(), extra=st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(-9, 9), max_size=3))
def test_unknown_keys_are_kept_and_change_nothing_else(forge: Forge, extra: dict[str, int]) -> None:
    call = forge.calls[-1]
    more = {key: value for key, value in extra.items() if key not in call.record() and key != "weight_version"}
    (bare,), (full,) = read(call.line())[1], read(canonical(call.record() | more))[1]
    assert full.pop("rest") == {**bare.pop("rest"), **more}
    assert full == bare
