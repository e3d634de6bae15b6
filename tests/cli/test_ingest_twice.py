"""`ng-capture ingest` into a store that holds something: the same again, more of it, another content, other writers."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support import logs
from tests.support.command import COMMAND, Run
from tests.support.forge import Forge, Row, canonical, in_lines
from tests.support.gym_writer import GymWriter
from tests.support.ingesting import (
    actions,
    dialogue,
    document,
    generation,
    generations,
    in_files,
    ingest,
    links,
    reasons,
    stored,
    told_calls,
    trained,
    verdict,
    verdicts,
)
from tests.support.logs import ONE_CALL, write_log
from tests.support.raw_calls import write_capture
from tests.support.retention import held
from tests.support.runs import healthy, write_retired
from tests.support.struck import tree

PARTS = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three calls of rollout r-1."""
    write_capture(tmp_path, "r-1", dialogue(3))
    return tmp_path / "r-1.capture.jsonl"


def lines_of(rows: list[Row]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


def other_tokens(row: Row) -> Row:
    """The same call as if it had generated other tokens."""
    changed: Row = json.loads(json.dumps(row))
    message = changed["response"]["choices"][0]["message"]
    message["generation_token_ids"] = [token + 1 for token in message["generation_token_ids"]]
    return changed


# The same again


@pytest.mark.parametrize("name", ONE_CALL)
def test_the_same_source_twice_touches_no_file(name: str, tmp_path: Path, store: Path) -> None:
    file_name, data = ONE_CALL[name]
    (tmp_path / file_name).write_bytes(data)
    words = (tmp_path / file_name, "--rollout-id", "q-1")
    assert ingest(store, *words).code == 0
    before = tree(store)
    done = ingest(store, *words)
    assert (done.code, actions(done), tree(store)) == (0, {"there": 1}, before)


@pytest.mark.parametrize("words", [[], ["--delta"], ["--log-probs", "raw"], ["--on-conflict", "mask"]])
def test_the_same_source_with_other_options_touches_no_file(words: list[str], log: Path, store: Path) -> None:
    ingest(store, log)
    before = tree(store)
    done = ingest(store, log, *words)
    assert (done.code, actions(done), tree(store)) == (0, {"there": 3}, before)


def test_a_source_with_every_fault_touches_no_file_the_second_time(tmp_path: Path, store: Path) -> None:
    rows = dialogue(5)
    rows[1]["response"] = {}
    del rows[2]["model_call_id"]
    rows[3]["response"]["choices"][0]["message"]["generation_token_ids"] = ["x", 1]
    rows.append({**other_tokens(rows[4]), "model_call_id": "c4"})
    data = b"\xef\xbb\xbf" + in_lines(lines_of(rows)) + b"{broken}\n\n" + b'{"model_call_id": "torn", "req'
    (tmp_path / "r-1.capture.jsonl").write_bytes(data)
    first = ingest(store, tmp_path / "r-1.capture.jsonl")
    before = tree(store)
    second = ingest(store, tmp_path / "r-1.capture.jsonl")
    assert tree(store) == before
    assert first.code == second.code == 1 and reasons(first) == reasons(second)


def test_one_call_in_two_logs_is_one_call(tmp_path: Path, log: Path, store: Path) -> None:
    (tmp_path / "r-1.capture.jsonl.gz").write_bytes(gzip.compress(log.read_bytes()))
    done = ingest(store, log, tmp_path / "r-1.capture.jsonl.gz")
    assert (done.code, reasons(done), actions(done)) == (0, {"duplicate_record": 3}, {"added": 3})
    assert len((store / "r-1.capture.jsonl").read_bytes().splitlines()) == 3
    assert trained(store) == generations(dialogue(3))


def test_raw_calls_that_lie_packed_in_the_store_are_not_written_again(log: Path, store: Path) -> None:
    ingest(store, log)
    plain = store / "r-1.capture.jsonl"
    (store / "r-1.capture.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    before = tree(store)
    assert ingest(store, log).code == 0
    assert tree(store) == before


@pytest.mark.parametrize("packed", [False, True])
def test_a_directory_of_raw_calls_gets_its_records_beside_them(packed: bool, store: Path) -> None:
    write_capture(store, "r-1", dialogue(3))
    write_capture(store, "r-2", dialogue(2))
    if packed:
        plain = store / "r-1.capture.jsonl"
        (store / "r-1.capture.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    raw = {name: data for name, data in in_files(store).items() if "capture" in name}
    done = ingest(store, store)
    assert (done.code, actions_of(done)) == (0, {"r-1": {"added": 3}, "r-2": {"added": 2}})
    assert {name: data for name, data in in_files(store).items() if "capture" in name} == raw
    assert {name: told["verdict"] for name, told in verdicts(store).items()} == {
        "r-1": "trainable",
        "r-2": "trainable",
    }
    before = tree(store)
    # records and raw calls of the same calls, both in one directory that is source and store
    done = ingest(store, store)
    assert (done.code, actions_of(done), tree(store)) == (0, {"r-1": {"there": 3}, "r-2": {"there": 2}}, before)


def actions_of(done: Run) -> dict[str, Counter[str]]:
    """How many calls of each rollout became what."""
    told = document(done)["rollouts"]
    return {rollout["rollout_id"]: Counter(call["action"] for call in rollout["calls"]) for rollout in told}


def test_a_link_to_the_store_is_the_store(store: Path, tmp_path: Path) -> None:
    write_capture(store, "r-1", dialogue(2))
    before = (store / "r-1.capture.jsonl").read_bytes()
    (tmp_path / "link").symlink_to(store)
    assert ingest(store, tmp_path / "link").code == 0
    assert (store / "r-1.capture.jsonl").read_bytes() == before


# More of it


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_a_source_that_grew_adds_the_rest(cut: int, log: Path, tmp_path: Path, store: Path) -> None:
    rows = dialogue(3)
    data = log.read_bytes()
    log.write_bytes(in_lines(lines_of(rows[:cut])))
    if cut:
        assert actions(ingest(store, log)) == {"added": cut}
    log.write_bytes(data)
    told = actions(ingest(store, log))
    assert told == Counter({"added": 3 - cut, "there": cut})
    ingest(tmp_path / "at-once", log)
    names = ("r-1.tokens.jsonl", "r-1.capture.jsonl", "r-1.tokens.intents")
    for name in names:
        assert (store / name).read_bytes() == (tmp_path / "at-once" / name).read_bytes()
    assert verdict(store) == ("trainable", [])


def test_calls_of_a_rotated_log_find_their_parents_in_the_store(tmp_path: Path, store: Path) -> None:
    rows = dialogue(4)
    first = write_log(tmp_path / "log.1", rows[:2])
    second = write_log(tmp_path / "log.2", rows[2:])
    ingest(store, first, "--rollout-id", "r-1")
    done = ingest(store, second, "--rollout-id", "r-1")
    assert {name: call["how"] for name, call in told_calls(done).items()} == {
        "c2": "conversation",
        "c3": "conversation",
    }
    assert links(store, "r-1") == {"c0": None, "c1": "c0", "c2": "c1", "c3": "c2"}
    assert trained(store) == generations(rows)


def test_calls_without_words_find_their_parents_in_the_store_by_their_tokens(tmp_path: Path, store: Path) -> None:
    def sample(number: int, prompt: list[int], sampled: list[int]) -> Row:
        samples = [{"tokens": sampled, "logprobs": [-0.5] * len(sampled), "stop_reason": "stop"}]
        return {**logs.TINKER, "seq_id": number, "created_at": number, "prompt_tokens": prompt, "samples": samples}

    ingest(store, write_log(tmp_path / "1.jsonl", [sample(1, [1, 2], [3])]))
    done = ingest(store, write_log(tmp_path / "2.jsonl", [sample(2, [1, 2, 3, 4], [5]), sample(3, [1, 2, 3, 9], [8])]))
    assert {name: call["how"] for name, call in told_calls(done).items()} == {"s1:2": "prefix", "s1:3": "prefix"}
    assert set(links(store, "run1.iter3.group0.traj1").values()) == {None, "s1:1"}


def test_a_parent_that_comes_later_is_named_when_it_comes_first_in_time(tmp_path: Path, store: Path) -> None:
    """What was linked before stays: a record is never written anew."""
    rows = dialogue(3)
    ingest(store, write_log(tmp_path / "2", rows[1:]), "--rollout-id", "r-1")
    before = stored(store, "r-1")
    assert links(store, "r-1") == {"c1": "?no_match", "c2": "c1"}
    ingest(store, write_log(tmp_path / "1", rows[:1]), "--rollout-id", "r-1")
    after = stored(store, "r-1")
    assert {name: after[name] for name in before} == before and after["c0"]["parent_resolution"] == "root"
    assert verdict(store)[0] == "masked"


@pytest.mark.parametrize("legible", [True, False])
def test_a_torn_last_line_masks_until_it_comes_whole(legible: bool, log: Path, store: Path) -> None:
    """Where its call id can be read. Else nobody can tell which call was lost, and whether it came."""
    whole = log.read_bytes()
    last = whole.splitlines()[-1]
    log.write_bytes(whole[: -(len(last) - 30) if legible else -(len(last) - 5)])
    done = ingest(store, log)
    assert (done.code, reasons(done), actions(done)) == (1, {"torn_tail": 1}, {"added": 2})
    assert verdict(store)[0] == "masked"
    assert trained(store) == []
    log.write_bytes(whole)
    assert ingest(store, log).code == 0
    assert verdict(store)[0] == ("trainable" if legible else "masked")


def test_a_call_that_was_lost_comes_whole_from_another_log(log: Path, tmp_path: Path, store: Path) -> None:
    rows = dialogue(3)
    log.write_bytes(in_lines(lines_of(rows[:2])) + b'{"model_call_id": "c2", "dial')
    ingest(store, log)
    assert verdicts(store)["r-1"]["lost_calls"] == ["c2"]
    ingest(store, write_log(tmp_path / "proxy.jsonl", rows[2:]), "--rollout-id", "r-1")
    assert (verdict(store), trained(store)) == (("trainable", []), generations(rows))


def test_a_damaged_line_of_a_file_that_is_named_after_its_rollout_masks_it(tmp_path: Path, store: Path) -> None:
    (tmp_path / "r-1.capture.jsonl").write_bytes(b"\xff\xfe{}\n")
    done = ingest(store, tmp_path / "r-1.capture.jsonl")
    assert (done.code, reasons(done)) == (1, {"damaged_line": 1})
    assert verdict(store)[0] == "masked"


def test_a_mark_beside_a_source_masks(log: Path, store: Path) -> None:
    log.with_name("r-1.capture.incomplete").touch()
    done = ingest(store, log)
    assert (done.code, reasons(done), verdict(store)[0]) == (1, {"capture_incomplete": 1}, "masked")
    assert stored(store, "r-1").keys() == {"c0", "c1", "c2"}


# Another content


def test_another_content_of_a_call_leaves_its_rollout_alone(tmp_path: Path, log: Path, store: Path) -> None:
    rows = dialogue(4)
    ingest(store, log)
    before = tree(store)
    other = write_log(tmp_path / "other.jsonl", [other_tokens(rows[1]), rows[3]])
    done = ingest(store, other, "--rollout-id", "r-1")
    assert (done.code, reasons(done), actions(done)) == (1, {"conflicting_records": 1}, {"refused": 2})
    assert tree(store) == before
    (finding,) = document(done)["rollouts"][0]["findings"]
    assert (finding["call"], finding["line"]) == ("c1", 1)


def test_where_what_is_there_is_to_be_kept_the_rest_is_added(tmp_path: Path, log: Path, store: Path) -> None:
    rows = dialogue(4)
    ingest(store, log)
    before = (store / "r-1.tokens.jsonl").read_bytes()
    other = write_log(tmp_path / "other.jsonl", [other_tokens(rows[1]), rows[3]])
    done = ingest(store, other, "--rollout-id", "r-1", "--on-conflict", "keep")
    assert (done.code, reasons(done), actions(done)) == (1, {"conflicting_records": 1}, {"there": 1, "added": 1})
    assert (store / "r-1.tokens.jsonl").read_bytes().startswith(before)
    assert (verdict(store), trained(store)) == (("trainable", []), generations(rows))


def test_where_another_content_is_to_mask_it_masks(tmp_path: Path, log: Path, store: Path) -> None:
    rows = dialogue(4)
    ingest(store, log)
    before = (store / "r-1.tokens.jsonl").read_bytes()
    other = write_log(tmp_path / "other.jsonl", [other_tokens(rows[1]), rows[3]])
    words = (other, "--rollout-id", "r-1", "--on-conflict", "mask")
    assert (ingest(store, *words).code, verdict(store)[0], trained(store)) == (1, "masked", [])
    assert (store / "r-1.tokens.jsonl").read_bytes().startswith(before)
    marked = tree(store)
    assert ingest(store, *words).code == 1
    assert tree(store) == marked


@pytest.mark.parametrize("how", ["fail", "keep", "mask"])
def test_a_conflict_of_one_rollout_touches_no_other(how: str, tmp_path: Path, log: Path, store: Path) -> None:
    ingest(store, log)
    write_capture(tmp_path / "2", "r-1", [other_tokens(dialogue(1)[0])])
    write_capture(tmp_path / "2", "r-2", dialogue(2))
    done = ingest(store, tmp_path / "2", "--on-conflict", how)
    assert done.code == 1
    assert (verdict(store, "r-2"), trained(store, "r-2")) == (("trainable", []), generations(dialogue(2)))


def test_other_log_probabilities_are_another_content(tmp_path: Path, log: Path, store: Path) -> None:
    ingest(store, log)
    rows = dialogue(1)
    rows[0]["response"]["choices"][0]["message"]["generation_log_probs"][0] = -0.26
    done = ingest(store, write_log(tmp_path / "x.jsonl", rows), "--rollout-id", "r-1")
    assert reasons(done) == {"conflicting_records": 1}


def test_another_prompt_is_another_content(tmp_path: Path, log: Path, store: Path) -> None:
    ingest(store, log)
    rows = dialogue(1)
    rows[0]["response"]["choices"][0]["message"]["prompt_token_ids"][0] = 7
    done = ingest(store, write_log(tmp_path / "x.jsonl", rows), "--rollout-id", "r-1")
    assert reasons(done) == {"conflicting_records": 1}


def test_other_times_and_words_are_no_other_content(tmp_path: Path, log: Path, store: Path) -> None:
    ingest(store, log)
    records = in_files(store)["r-1.tokens.jsonl"]
    rows = [{**row, "completed_at": 9e9, "request": {**row["request"], "model": "other"}} for row in dialogue(3)]
    done = ingest(store, write_log(tmp_path / "x.jsonl", rows), "--rollout-id", "r-1")
    assert (done.code, actions(done), in_files(store)["r-1.tokens.jsonl"]) == (0, {"there": 3}, records)


def test_two_contents_in_one_source_make_no_record_of_either(tmp_path: Path, store: Path) -> None:
    rows = dialogue(2)
    write_capture(tmp_path, "r-1", [rows[0], rows[1], other_tokens(rows[1])])
    done = ingest(store, tmp_path / "r-1.capture.jsonl")
    assert reasons(done) == {"conflicting_records": 2}
    assert stored(store, "r-1").keys() == {"c0"}
    assert verdicts(store)["r-1"]["verdict"] == "masked"
    assert not set(generation(rows[1])) & set(trained(store))


# Who else writes


def test_a_sealed_rollout_takes_no_further_calls_and_the_others_go_on(tmp_path: Path, store: Path) -> None:
    forge = healthy("r-1")
    forge.write(store)
    (store / "r-1.tokens.state.json").write_bytes(canonical(forge.state(frozen=True, snapshot_id="5" * 32)) + b"\n")
    before = in_files(store)
    write_capture(tmp_path / "logs", "r-1", dialogue(1))
    write_capture(tmp_path / "logs", "r-2", dialogue(1))
    done = ingest(store, tmp_path / "logs")
    assert (done.code, reasons(done), actions_of(done)) == (
        1,
        {"rollout_frozen": 1},
        {"r-1": {"refused": 1}, "r-2": {"added": 1}},
    )
    after = in_files(store)
    assert {name: after[name] for name in before} == before


def test_what_a_sealed_rollout_holds_is_brought_again_without_a_fault(tmp_path: Path, store: Path) -> None:
    forge = healthy("r-1")
    forge.write(store)
    (store / "r-1.tokens.state.json").write_bytes(canonical(forge.state(frozen=True, snapshot_id="5" * 32)) + b"\n")
    forge.write(tmp_path / "logs")
    before = in_files(store)
    done = ingest(store, tmp_path / "logs")
    assert (done.code, actions(done), in_files(store)) == (0, {"there": 2}, before)


def test_a_retired_rollout_stays_retired(tmp_path: Path, store: Path) -> None:
    write_retired(store, "r-1")
    before = in_files(store)
    write_capture(tmp_path / "logs", "r-1", dialogue(1))
    done = ingest(store, tmp_path / "logs")
    assert (done.code, reasons(done), actions(done)) == (0, {"retired": 1}, {"refused": 1})
    assert {name: data for name, data in in_files(store).items() if name in before} == before
    assert not (store / "r-1.tokens.jsonl").exists()


def test_a_damaged_store_takes_nothing_and_says_so(log: Path, store: Path) -> None:
    healthy("r-1").write(store, state=False)
    (store / "r-1.tokens.jsonl").write_bytes(b"{broken}\n" + (store / "r-1.tokens.jsonl").read_bytes())
    before = (store / "r-1.tokens.jsonl").read_bytes()
    done = ingest(store, log)
    assert (done.code, reasons(done), actions(done)) == (1, {"damaged_line": 1}, {"refused": 3})
    assert (store / "r-1.tokens.jsonl").read_bytes() == before


def test_a_lock_that_another_process_holds_is_waited_for(log: Path, store: Path) -> None:
    store.mkdir()
    line = [COMMAND, "ingest", str(log), "--to", str(store), "-q"]
    with held(store / "r-1.tokens.lock"):
        process = subprocess.Popen(line)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        assert stored(store, "r-1") == {}
    assert process.wait(30) == 0
    assert stored(store, "r-1").keys() == {"c0", "c1", "c2"}


WRITER = """
import sys
from pathlib import Path
from tests.support.forge import Forge
from tests.support.gym_writer import GymWriter
directory, number = Path(sys.argv[1]), int(sys.argv[2])
forge = Forge("r-1")
call = forge.root([1, 2], [3], id="g0")
for place in range(1, number):
    call = call.then([4], [5], id=f"g{place}")
writer = GymWriter(directory, "r-1")
for call in forge.calls:
    writer.begin_call(call.id)
    writer.append(call.id, call.line())
    print(call.id, flush=True)
"""


def test_beside_a_live_writer_of_nemo_gym_no_record_of_either_is_lost(tmp_path: Path, store: Path) -> None:
    store.mkdir()
    rows = dialogue(6, start=1000)
    line = [sys.executable, "-c", WRITER, str(store), "40"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=PARTS) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "g0\n"
        for number in range(len(rows)):
            write_log(tmp_path / "x.jsonl", rows[: number + 1])
            assert ingest(store, tmp_path / "x.jsonl", "--rollout-id", "r-1").code == 0
        said = ["g0", *writer.stdout.read().split()]
    assert writer.returncode == 0 and len(said) == 40
    records = stored(store, "r-1")
    assert records.keys() == {*said, *(f"c{number}" for number in range(6))}
    # the writer's state knows all of it: its next append neither loses nor doubles a line
    GymWriter(store, "r-1").append("g-last", Forge("r-1").root([1], [2], id="g-last").line())
    assert stored(store, "r-1").keys() == {*records, "g-last"}
    assert len((store / "r-1.tokens.jsonl").read_bytes().splitlines()) == 47
    assert not [each for each in verdicts(store)["r-1"]["reasons"] if "torn" in each or "incomplete" in each]


def test_two_runs_at_once_write_every_call_once(tmp_path: Path, store: Path) -> None:
    rows = dialogue(8)
    write_capture(tmp_path, "r-1", rows)
    line = [COMMAND, "ingest", str(tmp_path / "r-1.capture.jsonl"), "--to", str(store), "-q"]
    running = [subprocess.Popen(line) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len((store / "r-1.tokens.jsonl").read_bytes().splitlines()) == 8
    assert (verdict(store), trained(store)) == (("trainable", []), generations(rows))
