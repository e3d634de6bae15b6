"""Claims about `bugs/`: every fault that users have met is met by the installed command as its case says."""

from pathlib import Path

import pytest

from tests.support.bug_case import BugCase, bug_case
from tests.support.bug_checks import problems_of
from tests.support.bug_setup import prepared
from tests.support.corpus import corpus_folder, ids_in

FOLDER = corpus_folder("bugs")
CASES = ids_in(FOLDER, sorted(path.parent.name for path in FOLDER.glob("*/expected.json")))


@pytest.mark.parametrize("case_id", CASES)
def test_the_fault_is_met_as_the_case_says(case_id: str, tmp_path: Path) -> None:
    case = bug_case(FOLDER / case_id)
    expected = case.expected
    if not case.invocation.available:
        expected = _runs_before(case)
    if case.invocation.args.get("to") == "any supported format":
        # which ones is what the way back knows
        expected = {"then": expected["then"]}
    with prepared(case, tmp_path) as workplace:
        problems = list(problems_of(workplace, case.invocation, expected))
    assert not problems, "\n".join([f"right: {case.right}", *problems])


def _runs_before(case: BugCase) -> dict[str, object]:
    """What can be checked of a case whose command is not there yet: a run of another command before it."""
    if case.expected.get("before", {}).get("command") is None:
        pytest.skip(f"no command line is known for {case.invocation.command} yet")
    return {"before": case.expected["before"]}
