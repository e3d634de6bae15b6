"""The public writer, as somebody uses it who captures calls of an own loop."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ng_capture.errors import NgCaptureError, RolloutDamaged, RolloutFrozen, UsageError, WriteRefused
from ng_capture.records.fingerprint import request_items
from ng_capture.sink import NotSealed, Sealed, TokenLineage, TokenRecord, TokenSink, TokenSource, as_delta, stamped
from tests.support.append_driver import chain, records
from tests.support.judging import judged


@pytest.fixture
def sink(tmp_path: Path) -> TokenSink:
    return TokenSink(tmp_path / "run" / "capture", "r-1")


def answer(text: str) -> dict[str, object]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def ask(sink: TokenSink, call_id: str, turns: list[object], prompt: list[int], generation: list[int]) -> list[object]:
    """One turn of a loop that captures itself; gives the conversation after it."""
    items = request_items({"input": turns, "instructions": "be brief"})
    found = TokenLineage(sink.directory, sink.rollout_id).resolve(items)
    sink.begin_call(call_id)
    record = TokenRecord(
        rollout_id=sink.rollout_id,
        model_call_id=call_id,
        prompt_token_ids=prompt,
        generation_token_ids=generation,
        generation_log_probs=[-0.5] * len(generation),
        output_items=[answer(call_id)],
        token_item_index=0,
        response_id=f"resp_{call_id}",
        parent_call_id=found.link.parent_call_id,
        parent_resolution=found.link.resolution,
        parent_resolution_reason=found.link.reason,
    )
    sink.append(as_delta(stamped(record, items), found.token_ids))
    return [*turns, answer(call_id)]


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def test_a_loop_that_captures_itself_gives_a_trainable_chain_of_deltas(sink: TokenSink) -> None:
    talk = ask(sink, "a", [user("q")], [1, 2], [3])
    talk = ask(sink, "b", [*talk, user("more")], [1, 2, 3, 4], [5])
    ask(sink, "c", [*talk, user("again")], [1, 2, 3, 4, 5, 6], [7])
    judgement = judged(sink.directory)
    assert (judgement.verdict, judgement.findings) == ("trainable", ())
    assert judgement.main_chain == ("a", "b", "c")
    frozen = TokenSource(sink.directory, "r-1").freeze()
    assert [list(record.prompt_token_ids) for record in frozen.records] == [[1, 2], [4], [6]]


def test_a_history_that_was_rewritten_is_unresolved_and_masks(sink: TokenSink) -> None:
    talk = ask(sink, "a", [user("q")], [1, 2], [3])
    ask(sink, "b", [user("other"), *talk[1:], user("more")], [1, 2, 3, 4], [5])
    assert "parent_unresolved" in judged(sink.directory).reasons


def test_a_sealed_rollout_takes_no_further_call(sink: TokenSink) -> None:
    sink.append(*records(chain("c", 2)))
    first = sink.seal()
    assert isinstance(first, Sealed) and sink.seal() == first
    with pytest.raises(RolloutFrozen):
        sink.begin_call("late")


def test_what_was_never_written_is_not_sealed(sink: TokenSink) -> None:
    assert sink.seal() == NotSealed("it has no token records")


@pytest.mark.parametrize("rollout_id", ["", ".", "-x", "a/b", "a b", "é"])
def test_an_id_that_must_not_become_a_file_name_is_wrong_use(tmp_path: Path, rollout_id: str) -> None:
    with pytest.raises(UsageError, match="no rollout id"):
        TokenSink(tmp_path / "new", rollout_id)
    assert list(tmp_path.iterdir()) == []


def test_every_refusal_is_of_one_kind() -> None:
    assert {each.__name__ for each in WriteRefused.__subclasses__()} == {
        "ConflictingRecord",
        "InvalidRecord",
        "RolloutDamaged",
        "RolloutFrozen",
        "RolloutRetired",
    }
    assert issubclass(WriteRefused, NgCaptureError)


def test_the_sink_loads_neither_judging_nor_the_terminal() -> None:
    program = "import sys, ng_capture.sink, ng_capture.conformance; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    unwanted = re.compile(r"ng_capture\.(chains|verdicts|outputs|retention|ingest)|typer|rich|polars|transformers")
    assert [name for name in loaded if unwanted.match(name)] == []


# The other end


def test_what_is_marked_after_the_freeze_is_not_dropped(sink: TokenSink) -> None:
    sink.append(*records(chain("c", 1)))
    source = TokenSource(sink.directory, "r-1")
    frozen = source.freeze()
    sink.mark_incomplete()
    assert source.freeze().incomplete and not source.drop(frozen.snapshot_id, frozen.version)
    assert (sink.directory / "r-1.tokens.jsonl").exists()


def test_a_drop_leaves_lock_and_tombstone_and_can_be_done_twice(sink: TokenSink) -> None:
    sink.begin_call("c-0")
    sink.append(*records(chain("c", 1)))
    source = TokenSource(sink.directory, "r-1")
    frozen = source.freeze()
    assert [source.drop(frozen.snapshot_id, frozen.version) for _ in range(2)] == [True, True]
    assert {path.name for path in sink.directory.iterdir()} == {"r-1.tokens.lock", "r-1.tokens.state.json"}
    with pytest.raises(RolloutDamaged, match="cannot be frozen"):
        source.freeze()


def test_a_rollout_that_is_not_there_does_not_come_into_being(tmp_path: Path) -> None:
    with pytest.raises(RolloutDamaged, match="it is not there"):
        TokenSource(tmp_path, "r-1").freeze()
    assert list(tmp_path.iterdir()) == []


# Parents


def test_a_line_that_is_being_written_is_left_for_the_next_look(sink: TokenSink) -> None:
    forge = chain("c", 2)
    path, lineage = sink.directory / "r-1.tokens.jsonl", TokenLineage(sink.directory, "r-1")
    request = [*forge.calls[0].request, *forge.calls[0].output, user("more")]
    first = forge.lines()[0] + b"\n"
    path.write_bytes(first[:40])
    assert lineage.resolve(request).link.reason == "no_match"
    path.write_bytes(first)
    found = lineage.resolve(request)
    assert (found.link.parent_call_id, found.token_ids) == ("c-0", [1, 2, 3])


def test_a_delta_without_its_parent_has_no_sequence(sink: TokenSink) -> None:
    forge = chain("c", 2)
    forge.delta = True
    (sink.directory / "r-1.tokens.jsonl").write_bytes(forge.lines()[1] + b"\n")
    request = [*forge.calls[1].request, *forge.calls[1].output]
    with pytest.raises(RolloutDamaged, match="leads to no full record"):
        TokenLineage(sink.directory, "r-1").resolve(request)


def test_a_damaged_record_is_told_to_who_looks_for_a_parent(sink: TokenSink) -> None:
    (sink.directory / "r-1.tokens.jsonl").write_bytes(b"{}\n")
    with pytest.raises(RolloutDamaged, match="invalid_record"):
        TokenLineage(sink.directory, "r-1").resolve([user("q"), answer("a")])


def test_a_record_is_a_value(sink: TokenSink) -> None:
    with pytest.raises(AttributeError):
        records(chain("c", 1))[0].model = "other"  # type: ignore[misc]
    assert msgspec.structs.replace(records(chain("c", 1))[0], model="other").model == "other"
