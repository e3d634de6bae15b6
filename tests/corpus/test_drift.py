"""Claims about `drift/`: where every prefix breaks, what stands there, and why."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from ng_capture.ingest.parents import presumed_parents
from ng_capture.outputs.explain.breaks import Break
from ng_capture.outputs.explain.causes import CAUSES
from tests.support.command import run, strict_json
from tests.support.corpus import corpus_folder, ids_in
from tests.support.drift import Drift, confusion

DRIFT = Drift(corpus_folder("drift"))
ROLLOUTS = ids_in(DRIFT.folder / "rollouts.jsonl", DRIFT.rollouts)
ENCODINGS = ids_in(DRIFT.folder / "rollouts.jsonl", sorted({row["encoding"] for row in DRIFT.rollouts.values()}))
FAMILIES = ids_in(DRIFT.folder / "rollouts.jsonl", DRIFT.families)


def sha256_of(ids: Iterable[object]) -> str:
    return hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()


def test_the_folder_holds_what_its_manifest_says() -> None:
    assert (len(DRIFT.rollouts), len(DRIFT.truth), len(DRIFT.edges), len(DRIFT.broken)) == (94, 334, 238, 88)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_token_fields_of_every_encoding_are_read_exactly(encoding: str) -> None:
    read = 0
    for rollout_id, row in DRIFT.rollouts.items():
        if row["encoding"] != encoding:
            continue
        for call_id, exchange in DRIFT.shown[rollout_id].exchanges.items():
            true, tokens = DRIFT.truth[call_id], exchange.tokens
            assert tokens is not None and tokens.complete, call_id
            digests = (sha256_of(tokens.prompt or ()), sha256_of(tokens.generation or ()))
            assert digests == (true["prompt_sha256"], true["generation_sha256"]), call_id
            told = math.fsum(value for value in tokens.log_probs or () if isinstance(value, float))
            assert told == pytest.approx(true["log_prob_sum"], abs=1e-5), call_id
            read += 1
    assert read == sum(row["calls"] for row in DRIFT.rollouts.values() if row["encoding"] == encoding)


def test_every_call_has_a_record_whose_ids_are_those_of_its_raw_call() -> None:
    told = {}
    for shown in DRIFT.shown.values():
        assert shown.raw_only
        for call in shown.judgement.analysis.calls.values():
            assert call.prompt is not None and call.full is not None
            ids = call.full.values()
            told[call.id] = (sha256_of(ids[: len(call.prompt)]), sha256_of(ids[len(call.prompt) :]))
    assert told == {call: (row["prompt_sha256"], row["generation_sha256"]) for call, row in DRIFT.truth.items()}


@pytest.mark.parametrize("rollout_id", ROLLOUTS)
def test_the_presumed_parents_are_the_true_ones(rollout_id: str) -> None:
    true = {call: row["parent_call_id"] for call, row in DRIFT.truth.items() if row["rollout_id"] == rollout_id}
    assert presumed_parents(list(DRIFT.shown[rollout_id].exchanges.values())) == true


def test_every_edge_is_judged_right() -> None:
    held: set[tuple[str, str | None]] = set()
    broken, roots = held.copy(), held.copy()
    for shown in DRIFT.shown.values():
        for call, link in shown.judgement.analysis.links.items():
            if link.fault is not None:
                broken.add((call, link.fault.parent))
            else:
                (roots if link.parent is None else held).add((call, link.parent))
    edges = [(row["model_call_id"], row["parent_call_id"], row["prefix_holds"]) for row in DRIFT.truth.values()]
    assert held == {(call, parent) for call, parent, holds in edges if parent is not None and holds}
    assert broken == {(call, parent) for call, parent, holds in edges if parent is not None and not holds}
    assert roots == {(call, parent) for call, parent, _ in edges if parent is None}


def place(found: Break) -> dict[str, Any]:
    """A break in the words of `truth.jsonl`."""
    return {
        "common_len": found.common_len,
        "region": found.region,
        "offset_in_region": found.offset,
        "parent_prompt_len": found.parent_prompt_len,
        "parent_total_len": found.held_len,
        "parent_id": id_at(found.held.ids, found.common_len - found.held.start),
        "child_id": id_at(found.new.ids, found.common_len - found.new.start),
    }


def id_at(ids: Sequence[int], place: int) -> int | None:
    return ids[place] if place < len(ids) else None


@pytest.mark.parametrize("how", ["breaks_by_text", "breaks_by_ids"])
def test_every_break_is_found_with_its_exact_place_and_ids(how: str) -> None:
    found: dict[str, Break] = getattr(DRIFT, how)
    true = {row["model_call_id"]: row["break"] for row in DRIFT.broken}
    assert found.keys() == true.keys()
    for call, each in found.items():
        said = {key: value for key, value in true[call].items() if key not in ("parent_piece", "child_piece")}
        assert place(each) == said, call
        assert (each.parent, each.turn) == (DRIFT.truth[call]["parent_call_id"], DRIFT.truth[call]["call_index"])


@pytest.mark.parametrize("family", FAMILIES)
def test_with_the_tokenizer_the_cause_is_the_true_one(family: str) -> None:
    broken = [row for row in DRIFT.broken if row["family"] == family]
    told = confusion(broken, DRIFT.breaks_by_text)
    assert told.right >= 0.95 * len(broken), list(told.wrong)


def test_without_a_tokenizer_the_cause_is_of_the_right_group() -> None:
    told = confusion(DRIFT.broken, DRIFT.breaks_by_ids)
    assert told.right_group >= 0.75 * len(DRIFT.broken), list(told.wrong)


def test_only_what_a_message_shows_is_called_likely_without_a_tokenizer() -> None:
    wrong = [each for each in DRIFT.breaks_by_ids.values() if each.cause != DRIFT.truth[each.call]["cause"]]
    assert [each.call for each in wrong if each.confidence != "open"] == []


def test_every_cause_of_the_folder_is_in_the_list() -> None:
    assert {row["cause"] for row in DRIFT.broken} <= CAUSES.keys()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_command_sums_up_what_is_true(family: str) -> None:
    ours = [rollout_id for rollout_id, row in DRIFT.rollouts.items() if row["family"] == family]
    chosen = [word for rollout_id in ours for word in ("--include", rollout_id)]
    done = run("explain", DRIFT.captures, "--json", "-q", "--tokenizer", DRIFT.folder / family, *chosen)
    told, true = strict_json(done.out), [row for row in DRIFT.broken if row["family"] == family]
    assert (done.code, done.err) == (0, "")
    assert {each["call"]: each["cause"] for each in told["breaks"]} == {r["model_call_id"]: r["cause"] for r in true}
    assert causes_in(told["summary"]) == causes_of(true)
    summary = told["summary"]
    assert (summary["rollouts"], summary["breaks"]) == (len(ours), len(true))
    assert summary["by_turn"] == {str(turn): n for turn, n in sorted(Counter(r["call_index"] for r in true).items())}


def causes_in(summary: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Breaks and rollouts by cause as the command says."""
    return {each["cause"]: (each["breaks"], each["rollouts"]) for each in summary["by_cause"]}


def causes_of(broken: Sequence[Any]) -> dict[str, tuple[int, int]]:
    """The same as it is."""
    breaks = Counter(row["cause"] for row in broken)
    rollouts = Counter(cause for cause, _ in {(row["cause"], row["rollout_id"]) for row in broken})
    return {cause: (breaks[cause], rollouts[cause]) for cause in breaks}
