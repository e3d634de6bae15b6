"""The README, the fixtures and the registry cannot drift from the code."""

import json
import re
from pathlib import Path

import pytest

from ng_capture.outputs.shapes.health import DESCRIPTIONS
from ng_capture.verdicts.deviations import DEVIATIONS
from ng_capture.verdicts.health.metrics import METRICS
from ng_capture.verdicts.reasons import REASONS
from tests.support.command import run
from tests.support.fixtures import ROOT, contents

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text()


def between(name: str) -> list[str]:
    """The lines of the README between two marks."""
    match = re.search(rf"<!-- {name} -->\n(.*)\n<!-- /{name} -->", README, re.DOTALL)
    assert match is not None
    return match[1].splitlines()


def test_the_readme_lists_every_reason() -> None:
    rows = [f"| `{reason.name}` | {reason.severity} | {reason.meaning} |" for reason in REASONS.values()]
    assert between("reasons") == ["| reason | severity | meaning |", "|---|---|---|", *rows]


def test_the_readme_lists_every_deviation() -> None:
    rows = [f"| `{name}` | {why} |" for name, why in DEVIATIONS.items()]
    assert between("deviations") == ["| deviation | why |", "|---|---|", *rows]


def test_the_readme_lists_every_metric() -> None:
    rows = [f"| `{name}` | {DESCRIPTIONS[name]} |" for name in METRICS]
    assert between("metrics") == ["| metric | what it is |", "|---|---|", *rows]


def test_the_readme_lists_every_command() -> None:
    listed = set(re.findall(r"^\| `(\w+)[ `]", README.split("## Commands")[1].split("##")[0], re.MULTILINE))
    offered = set(re.findall(r"^│ (\w+) ", run("--help", COLUMNS="100", TERMINAL_WIDTH="100").out, re.MULTILINE))
    assert listed == offered


def test_the_fixtures_are_those_that_their_description_makes() -> None:
    made = contents()
    stored = {str(p.relative_to(ROOT)): p.read_bytes() for p in ROOT.rglob("*") if p.is_file() and p.suffix != ".md"}
    assert stored == made


EXPECTED = json.loads((ROOT / "expected.json").read_text())


@pytest.mark.parametrize("rollout_id", EXPECTED)
def test_a_fixture_is_judged_as_it_says(rollout_id: str) -> None:
    options = ("--rollouts", ROOT / "rollouts.jsonl", "--include", rollout_id, "-f", "jsonl")
    report = next(r for r in run("verify", ROOT / "capture", *options).rows if r["rollout_id"] == rollout_id)
    expected = EXPECTED[rollout_id]
    assert (report["verdict"], report["reasons"]) == (expected["verdict"], expected["reasons"])
    assert (report["delivered_calls"] or None) == expected["calls"]
