"""Harbor's conversation exports of the corpus: every answer once, written to every contract."""

import json
from pathlib import Path

import pytest

from ng_capture.contracts.interface import Read
from ng_capture.contracts.registry import writable
from tests.support.conversions import converted, faults_of, outcomes_of
from tests.support.corpus import corpus_folder

FOLDER = corpus_folder("contracts") / "atif" / "sft_traces"
EXPORTS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.name)
def test_every_answer_that_ends_a_row_counts_once(path: Path) -> None:
    rows = json.loads(path.read_bytes())
    reads = [each for each in outcomes_of("harbor", path.read_bytes()) if isinstance(each, Read)]
    own = [turn.content for read in reads for turn in read.episode.main.turns if turn.fresh]
    assert sorted(map(str, own)) == sorted(row["conversations"][-1]["content"] for row in rows)
    assert {read.episode.reward for read in reads} == {1.0}
    assert faults_of("harbor", path.read_bytes()) == []


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.name)
@pytest.mark.parametrize("target", writable())
def test_an_export_is_written_to_every_contract_but_the_one_of_ids(path: Path, target: str) -> None:
    done = converted("harbor", target, path.read_bytes())
    assert done and all((each.written is None) == (target == "tokens") for each in done)
    assert len({each.name for each in done}) == len(done)


def test_a_family_is_the_main_agent_before_and_after_its_summary_and_the_summarising_agents() -> None:
    (path,) = [path for path in EXPORTS if "questions" not in path.name]
    names = [each.episode.rollout_id for each in outcomes_of("harbor", path.read_bytes()) if isinstance(each, Read)]
    trial = "NORMALIZED_TRIAL_NAME"
    assert names == [
        *(f"{trial}-episode-2", f"{trial}-episode-6"),
        *(f"{trial}-summarization-1-{each}-episode-0" for each in ("answers", "questions", "summary")),
    ]
