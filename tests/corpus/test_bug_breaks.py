"""Claims about the prefix breaks of `bugs/`: `explain` names the exact place and ids."""

import json
from typing import Any

import pytest

from tests.support.command import run, strict_json
from tests.support.corpus import corpus_folder

FOLDER = corpus_folder("bugs")
CASES: dict[str, dict[str, Any]] = {
    path.parent.name: json.loads(path.read_bytes()) for path in sorted(FOLDER.glob("*/expected.json"))
}
BREAKS = [
    pytest.param(case_id, rollout_id, finding, id=f"{case_id}-{rollout_id}")
    for case_id, case in CASES.items()
    for rollout_id, rollout in (case["expected"].get("rollouts") or {}).items()
    for finding in rollout.get("findings", ())
    if finding["reason"] == "prefix_mismatch" and "first_difference" in finding and not case["setup"]
]


@pytest.mark.parametrize(("case_id", "rollout_id", "finding"), BREAKS)
def test_the_break_is_explained_at_its_exact_place(case_id: str, rollout_id: str, finding: dict[str, Any]) -> None:
    done = run("explain", FOLDER / case_id / CASES[case_id]["args"]["store"], rollout_id, finding["call"], "--json")
    (found,) = strict_json(done.out)["breaks"]
    at = found["common_len"]
    ids = [found[side]["ids"][at - found[side]["start"]] for side in ("held", "new")]
    assert (found["call"], found["parent"], at) == (finding["call"], finding["parent"], finding["first_difference"])
    assert ids == [finding["expected"], finding["found"]]
    assert found["parent_named"]


def test_the_folder_has_such_cases() -> None:
    assert len(BREAKS) >= 3
