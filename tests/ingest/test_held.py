"""What the store holds of a rollout, as `ingest` compares it with what comes."""

import tempfile
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from ng_capture.files.listing import list_rollouts
from ng_capture.ingest.held import Evidence, Held, evidence_of_record, read_held
from ng_capture.records.token_record import TokenRecord, decode_record
from tests.support.forge import Forge, canonical, write_files
from tests.support.runs import healthy
from tests.support.strategies import forges


def held(directory: Path) -> Held:
    return read_held(list_rollouts([str(directory)]).get("r-1"))


def test_nothing_is_held_of_a_rollout_that_is_not_there() -> None:
    assert read_held(None).calls == {}


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
def test_every_call_is_held_with_its_whole_sequence(delta: bool, compression: str, tmp_path: Path) -> None:
    forge = Forge("r-1", delta=delta)
    forge.root([1, 2], [3], id="a").then([4], [5, 6], id="b").then([7], [], id="c")
    forge.write(tmp_path, compression=compression)
    found = held(tmp_path)
    assert {name: list(call.full or ()) for name, call in found.calls.items()} == {c.id: c.full for c in forge.calls}
    assert [call.generated for call in found.calls.values()] == [1, 2, 0]
    assert found.announced == {"a", "b", "c"}
    record = found.calls["b"].record
    assert (record.parent_call_id, record.response_id, list(record.prompt_token_ids)) == ("a", "resp_b", [])


@settings(deadline=None)
@given(forges())
def test_what_is_held_agrees_with_its_own_record_and_with_no_other(forge: Forge) -> None:
    with tempfile.TemporaryDirectory() as directory:
        forge.write(Path(directory))
        found = held(Path(directory))
        for call in forge.calls:
            record = decode_record(call.line())
            assert evidence_of_record(record).agrees(found.calls[call.id].evidence)
            other = msgspec.structs.replace(record, generation_token_ids=[*record.generation_token_ids, 1])
            assert not evidence_of_record(other).agrees(found.calls[call.id].evidence)


RECORD = decode_record(healthy("r-1").lines()[0])


@pytest.mark.parametrize(
    ("change", "agrees"),
    [
        ({"created_at": 9.0, "model": "other", "output_items": [], "response_id": None}, True),
        ({"digest": None}, True),
        ({"digest": "0" * 64}, False),
        ({"generation_token_ids": [4]}, False),
        ({"generation_log_probs": [-0.125]}, False),
    ],
)
def test_tellings_of_a_call_agree_where_tokens_and_log_probabilities_do(change: Any, agrees: bool) -> None:
    one, other = evidence_of_record(RECORD), evidence_of_record(msgspec.structs.replace(RECORD, **change))
    assert one.agrees(other) is other.agrees(one) is agrees


def test_a_record_without_a_digest_is_held_with_that_of_its_ids(tmp_path: Path) -> None:
    forge = Forge("r-1")
    forge.root([1, 2], [3], id="a", digest=None)
    forge.write(tmp_path)
    own = decode_record(Forge("r-1").root([1, 2], [3], id="a").line())
    assert held(tmp_path).calls["a"].evidence.digest == own.digest


def test_a_delta_whose_parent_is_not_there_is_held_without_a_sequence(tmp_path: Path) -> None:
    forge = Forge("r-1", delta=True)
    forge.root([1], [2], id="a").then([3], [4], id="b", digest=None)
    write_files(tmp_path, {"r-1.tokens.jsonl": forge.lines()[1] + b"\n"})
    call = held(tmp_path).calls["b"]
    assert (call.full, call.evidence.digest) == (None, None)
    # then its generation is all that can be compared
    record = msgspec.structs.replace(decode_record(forge.lines()[1]), digest="1" * 64)
    assert evidence_of_record(record).agrees(call.evidence)


def test_null_log_probabilities_are_held_as_none(tmp_path: Path) -> None:
    forge = Forge("r-1")
    forge.root([1], [2], id="a", generation_log_probs=[None])
    forge.write(tmp_path)
    own = Forge("r-1").root([1], [2]).record()["digest"]
    assert held(tmp_path).calls["a"].evidence == Evidence(own, array("i", [2]).tobytes(), b"")


def state(**values: Any) -> bytes:
    return canonical(healthy("r-1").state(**values)) + b"\n"


@pytest.mark.parametrize(
    ("changed", "lagging"),
    [
        ({}, False),
        ({"tokens.state.json": None}, True),
        ({"tokens.state.json": state(indexed_size=10)}, True),
        ({"tokens.state.json": state(indexed_size=0, entry_digests={})}, True),
        ({"tokens.state.json": state(indexed_size=0, entry_digests={}, frozen=True)}, False),
        ({"tokens.state.json": canonical({"frozen": False, "version": 2})}, False),
        ({"tokens.state.json": b"{"}, False),
        ({"tokens.jsonl": None}, False),
        ({"tokens.state.json": None, "tokens.jsonl": b"".join(healthy("r-1").lines())[:-9]}, False),
        ({"tokens.state.json": None, "tokens.jsonl": None, "tokens.jsonl.gz": b"packed"}, False),
    ],
)
def test_a_state_lags_where_a_killed_writer_had_no_time_for_it(
    changed: dict[str, bytes | None], lagging: bool, tmp_path: Path
) -> None:
    files = healthy("r-1").files()
    for name, data in changed.items():
        files.pop(f"r-1.{name}", None)
        if data == b"packed":
            files |= {n: d for n, d in healthy("r-1").files(compression=".gz").items() if n.endswith(".gz")}
        elif data is not None:
            files[f"r-1.{name}"] = data
    write_files(tmp_path, files)
    assert held(tmp_path).lagging is lagging


def test_raw_calls_are_not_looked_at(tmp_path: Path) -> None:
    """They may be a thousand times as large."""
    healthy("r-1").write(tmp_path)
    (tmp_path / "r-1.capture.jsonl").mkdir()
    assert held(tmp_path).calls.keys() == {"a", "b"}


def test_a_record_is_bare_but_for_what_links_are_found_by(tmp_path: Path) -> None:
    healthy("r-1").write(tmp_path)
    bare: TokenRecord = held(tmp_path).calls["a"].record
    whole = decode_record(healthy("r-1").lines()[0])
    for name in ("continuation_fingerprint", "continuation_context_digest", "continuation_context_len", "cum_len"):
        assert getattr(bare, name) == getattr(whole, name)
