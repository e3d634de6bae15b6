"""The README, the fixtures and the registry cannot drift from the code."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from ng_capture.outputs.explain.causes import CAUSES
from ng_capture.outputs.export.proof.invariants import NUMBERED
from ng_capture.outputs.shapes.health import DESCRIPTIONS
from ng_capture.verdicts.deviations import DEVIATIONS
from ng_capture.verdicts.health.metrics import METRICS
from ng_capture.verdicts.reasons import REASONS
from tests.support.command import COMMAND, run, strict_json
from tests.support.fixtures import ROOT, contents
from tests.support.forge import write_rows
from tests.support.markdown_page import read_page
from tests.support.pictures import FOLDER, pictures
from tests.support.runs import broken, healthy, write_lost
from tests.support.workflow_commands import workflow_commands

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


def test_the_readme_lists_every_invariant_of_a_file() -> None:
    rows = [f"| `{number}` | {meaning} |" for number, meaning in NUMBERED.items()]
    assert between("invariants") == ["| number | a row breaks it where |", "|---|---|", *rows]


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


_DRAWN = (".md", ".svg")


def test_the_pictures_show_what_the_commands_print() -> None:
    assert {path.name: path.read_text() for path in FOLDER.iterdir()} == pictures()


def test_the_readme_lists_every_cause() -> None:
    rows = [f"| `{cause.name}` | {cause.group} | {cause.meaning} | {cause.remedy} |" for cause in CAUSES.values()]
    assert between("causes") == ["| cause | group | meaning | what to do |", "|---|---|---|---|", *rows]


def test_the_fixtures_are_those_that_their_description_makes() -> None:
    made = contents()
    stored = {
        str(p.relative_to(ROOT)): p.read_bytes() for p in ROOT.rglob("*") if p.is_file() and p.suffix not in _DRAWN
    }
    # what is made of logs is held against the command in tests/cli/test_ingest_golden.py
    assert {name: data for name, data in stored.items() if not name.startswith("ingest/")} == made


EXPECTED = json.loads((ROOT / "expected.json").read_text())


@pytest.mark.parametrize("rollout_id", EXPECTED)
def test_a_fixture_is_judged_as_it_says(rollout_id: str) -> None:
    options = ("--rollouts", ROOT / "rollouts.jsonl", "--include", rollout_id, "-f", "jsonl")
    report = next(r for r in run("verify", ROOT / "capture", *options).rows if r["rollout_id"] == rollout_id)
    expected = EXPECTED[rollout_id]
    assert (report["verdict"], report["reasons"]) == (expected["verdict"], expected["reasons"])
    assert (report["delivered_calls"] or None) == expected["calls"]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """What a job finds: `runs/42` with 60 rollouts of which one lost a call, `runs/42.jsonl`, `tasks.jsonl`."""
    forges = [healthy(f"{number}-0") for number in range(59)]
    for forge in forges:
        forge.write(tmp_path / "runs" / "42")
    forges.append(write_lost(tmp_path / "runs" / "42", "59-0"))
    write_rows(tmp_path / "runs" / "42.jsonl", [forge.row(forge.calls[-1]) for forge in forges])
    write_rows(tmp_path / "tasks.jsonl", [{"_ng_task_index": n, "_ng_rollout_index": 0} for n in range(60)])
    return tmp_path


def ci(job: Path, recipe: str) -> subprocess.CompletedProcess[str]:
    """Run the recipe as the step of a job, where any line that fails ends it."""
    path = f"{Path(COMMAND).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(job / "summary.md")}
    line = ["bash", "-e", "-c", recipe]
    return subprocess.run(line, cwd=job, env=environment, capture_output=True, text=True, timeout=120, check=False)


def recipe_of_the_readme() -> str:
    fence, *lines, end = between("ci")
    assert (fence, end) == ("```sh", "```") and len(lines) >= 5
    return "\n".join(lines)


def test_the_ci_recipe_lets_an_acceptable_run_pass(job: Path) -> None:
    done = ci(job, recipe_of_the_readme())
    assert done.returncode == 0, done.stderr
    assert {command.name for command in workflow_commands(done.stdout)} == {"warning", "notice"}
    assert "Checks" in read_page((job / "summary.md").read_text()).headings
    assert 'tests="62" failures="1"' in (job / "junit.xml").read_text()
    assert strict_json((job / "health.json").read_bytes())["metrics"]["trainable"] == 59


def test_the_ci_recipe_stops_at_a_run_that_is_not_acceptable(job: Path) -> None:
    broken("5-0").write(job / "runs" / "42")
    done = ci(job, recipe_of_the_readme())
    assert done.returncode == 1
    failed = [c.properties["title"] for c in workflow_commands(done.stdout) if c.name == "error"]
    assert failed == ["reasons.prefix_mismatch"]
    assert (job / "health.json").is_file() and (job / "junit.xml").is_file()


def test_the_ci_recipe_stops_at_a_metric_that_is_none(job: Path) -> None:
    misspelled = recipe_of_the_readme().replace("reasons.prefix_mismatch", "reasons.prefix_mismach")
    done = ci(job, misspelled)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--max reasons.prefix_mismach: no metric" in done.stderr


def test_the_health_file_of_the_ci_recipe_is_a_baseline_of_the_next_run(job: Path) -> None:
    assert ci(job, recipe_of_the_readme()).returncode == 0
    gate = "ng-capture health runs/42 --rollouts runs/42.jsonl --baseline health.json --max-drop trained_fraction=0"
    assert ci(job, gate).returncode == 0
    broken("5-0").write(job / "runs" / "42")
    assert ci(job, gate).returncode == 1
