"""What a case of `bugs/` expects, held against what ng-capture did; a key that nothing checks is a problem too."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from tests.support.bug_case import Invocation
from tests.support.bug_converted import problems_of_output, problems_of_the_way_back
from tests.support.bug_files import Change, tree_of
from tests.support.bug_killed import problems_of_kills
from tests.support.bug_rollouts import problems_of_rollout
from tests.support.bug_setup import Ran, Workplace, prepared, set_up
from tests.support.command import strict_json

Problems = Iterator[str]
_RECEIPT = ".receipt.json"


class Observed:
    """One run in a workplace, and what further reading runs with the same options tell of it."""

    def __init__(self, workplace: Workplace, invocation: Invocation, *, measured: bool) -> None:
        self.workplace = workplace
        self.invocation = invocation
        before = tree_of(workplace.root)
        self.ran: Ran = workplace.run(invocation, measured=measured)
        if invocation.command == "verify":
            assert self.reports is not None
        output = invocation.output
        self.change = Change(
            root=workplace.root,
            before=before,
            after=tree_of(workplace.root),
            outputs=() if output is None else (output, output + _RECEIPT),
            complete=self._complete,
        )

    @cached_property
    def as_json(self) -> Ran:
        """The same judgement as data: `verify -f jsonl`."""
        return self.workplace.run(self.invocation.as_verify(), "-f", "jsonl")

    @cached_property
    def reports(self) -> dict[str, dict[str, Any]]:
        """The report on every rollout."""
        lines = map(json.loads, self.as_json.stdout.splitlines())
        return {report["rollout_id"]: report for report in lines}

    def went(self, words: set[str]) -> list[str]:
        """The rollouts of which `gc` printed one of these words."""
        lines = (line.split(": ") for line in self.ran.stdout.decode().splitlines())
        return sorted(line[0] for line in lines if line[1] in words)

    @cached_property
    def health(self) -> dict[str, Any]:
        """The same run of `health` as a document; anything but strict JSON fails."""
        ran = self.workplace.run(self.invocation, "-f", "json")
        if ran.exit_code != self.ran.exit_code:
            raise AssertionError(f"exit code {ran.exit_code} with -f json, {self.ran.exit_code} without")
        document: dict[str, Any] = strict_json(ran.stdout)
        return document

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The training rows of this run; for a command that makes none, those of a rebuild with the same options."""
        path = self.workplace.root / (self.invocation.output or "")
        if self.invocation.command != "rebuild":
            path = self.workplace.beside / "rows.jsonl"
            self.workplace.run(self.invocation.as_rebuild(path))
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.is_file() else []

    @cached_property
    def receipt(self) -> bytes | None:
        """The receipt beside the output, None for a command that has none."""
        if self.invocation.command != "rebuild":
            return None
        path = self.workplace.root / f"{self.invocation.output}{_RECEIPT}"
        return path.read_bytes() if path.is_file() else b"{}"

    @property
    def receipts(self) -> dict[str, dict[str, Any]] | None:
        """The receipt's entry of every rollout."""
        if self.receipt is None:
            return None
        return {entry["rollout_id"]: entry for entry in json.loads(self.receipt).get("rollouts", ())}

    def _complete(self, path: str) -> bytes | None:
        with prepared(self.workplace.case, self.workplace.beside / "undisturbed", undisturbed=True) as other:
            other.run(self.invocation)
            whole = other.root / path
            return whole.read_bytes() if whole.is_file() else None


def problems_of(workplace: Workplace, invocation: Invocation, expected: Mapping[str, Any]) -> Problems:
    """Run the command, and the runs before and after it; yields whatever is not as expected."""
    here = {key: value for key, value in expected.items() if key not in _FURTHER_RUNS}
    if "before" in expected:
        yield from _further(workplace, invocation, expected["before"], "before")
    if "killed" in here:
        yield from problems_of_kills(workplace, invocation, here.pop("killed"))
    if here:
        observed = Observed(workplace, invocation, measured="limits" in here)
        yield from _checked(observed, here)
    if "without_inference" in expected:
        other = invocation.without("infer_links")
        yield from _named("without_inference", problems_of(workplace, other, expected["without_inference"]))
    if "then" in expected:
        yield from _further(workplace, invocation, expected["then"], "then")


_FURTHER_RUNS = frozenset({"before", "then", "without_inference"})


def _further(workplace: Workplace, invocation: Invocation, said: Mapping[str, Any], name: str) -> Problems:
    expected = {key: value for key, value in said.items() if key not in ("command", "args", "setup")}
    if said.get("command") == "convert back":
        yield from _named(name, problems_of_the_way_back(workplace, invocation))
        return
    other = Invocation(said.get("command", invocation.command), invocation.but(**said.get("args", {})).args)
    if other.command == "verify":
        other = other.as_verify()
    steps = said.get("setup", [])
    if steps == "fault removed":
        workplace.faults.clear()
        steps = []
    assert isinstance(steps, list), f"setup {steps!r} is not understood"
    for step in steps:
        set_up(workplace, step)
    if not other.available:
        yield f"{name}: no command line is known for {other.command}"
        return
    yield from _named(name, problems_of(workplace, other, expected))


def _named(name: str, problems: Problems) -> Problems:
    yield from (f"{name}: {problem}" for problem in problems)


def _checked(observed: Observed, expected: Mapping[str, Any]) -> Problems:
    for key, value in expected.items():
        check = _CHECKS.get(key)
        if check is None:
            yield f"nothing checks {key!r} of what is expected of {observed.invocation.command}"
        else:
            yield from check(observed, value)


def _exit_code(observed: Observed, expected: int) -> Problems:
    ran = observed.ran
    if ran.exit_code != expected:
        yield f"exit code {ran.exit_code}, expected {expected}; printed: {ran.text[-2000:]}"
    if observed.invocation.command == "verify" and observed.as_json.exit_code != expected:
        yield f"exit code {observed.as_json.exit_code} with -f jsonl, expected {expected}"


def _rollouts(observed: Observed, expected: Mapping[str, Mapping[str, Any]]) -> Problems:
    receipts = observed.receipts
    for rollout_id, wanted in expected.items():
        report = observed.reports.get(rollout_id)
        if report is None:
            yield f"{rollout_id}: verify reports nothing; printed: {observed.as_json.text[-2000:]}"
            continue
        entry = None if receipts is None else receipts.get(rollout_id)
        if receipts is not None and entry is None:
            yield f"{rollout_id}: is not in the receipt"
        rows = [row for row in _rows_if_wanted(observed, wanted) if row["rollout_id"] == rollout_id]
        yield from _named(rollout_id, problems_of_rollout(wanted, report, entry, rows))


def _rows_if_wanted(observed: Observed, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    return observed.rows if observed.invocation.command == "rebuild" or "tokens" in wanted else []


def _rows(observed: Observed, expected: int | list[dict[str, Any]]) -> Problems:
    rows = observed.rows
    count = expected if isinstance(expected, int) else len(expected)
    if len(rows) != count:
        yield f"{len(rows)} rows, expected {count}"
    for number, (row, wanted) in enumerate(zip(rows, [] if isinstance(expected, int) else expected, strict=False)):
        told = {key: row["rollout_id" if key == "rollout" else key] for key in wanted}
        yield from (
            f"row {number}: {key} {told[key]}, expected {wanted[key]}" for key in told if told[key] != wanted[key]
        )


def _rows_that_train_each_token(observed: Observed, expected: int) -> Problems:
    """In how many rows a generated token has mask 1."""
    trained: dict[tuple[str, str, int], int] = {}
    for row in observed.rows:
        for span in row["spans"]:
            for place in range(span["start"], span["end"]) if span["kind"] == "gen" else ():
                token = (row["rollout_id"], span["call_id"], place - span["start"])
                trained[token] = trained.get(token, 0) + row["loss_mask"][place]
    yield from (f"{token} has mask 1 in {count} rows" for token, count in trained.items() if count != expected)


def _message_names(observed: Observed, expected: list[str]) -> Problems:
    seen = observed.ran.text + (observed.receipt or b"").decode()
    yield from (
        f"{name!r} does not occur in what the user sees: {seen[-2000:]}" for name in expected if name not in seen
    )


def _output_has_no(observed: Observed, expected: list[str]) -> Problems:
    printed = observed.ran.text + (observed.as_json.text if observed.invocation.command == "verify" else "")
    yield from (f"{text!r} is printed" for text in expected if text in printed)


def _files(observed: Observed, expected: object) -> Problems:
    yield from observed.change.problems(expected)


def _limits(observed: Observed, expected: Mapping[str, float]) -> Problems:
    for key, limit in expected.items():
        measured = observed.ran.measured.get(key)
        if measured is None:
            yield f"limits: nothing measures {key!r}"
        elif measured > limit:
            yield f"limits: {key} {measured:.1f}, at most {limit}"


def _any_of(observed: Observed, expected: list[Mapping[str, Any]]) -> Problems:
    outcomes = [list(_checked(observed, outcome)) for outcome in expected]
    if all(outcomes):
        yield f"none of {len(outcomes)} outcomes: " + "; or ".join(", ".join(problems) for problems in outcomes)


def _floats(observed: Observed, expected: str) -> Problems:
    """Log probabilities are compared as doubles everywhere."""
    if expected != "exact":
        yield f"floats: {expected!r} is not understood"


def _metrics(observed: Observed, expected: Mapping[str, Any]) -> Problems:
    told = observed.health["metrics"]
    for name, value in expected.items():
        if told.get(name, "absent") != value:
            yield f"{name} {told.get(name)!r}, expected {value!r}"


def _failed_checks(observed: Observed, expected: list[str]) -> Problems:
    if observed.health["failed_checks"] != expected:
        yield f"failed checks {observed.health['failed_checks']}, expected {expected}"


def _output(observed: Observed, expected: str | Mapping[str, Any]) -> Problems:
    """`health` reads the document so already."""
    if isinstance(expected, Mapping):
        yield from problems_of_output(observed.workplace, observed.invocation, expected)
    elif expected != "strict JSON, no NaN or Infinity":
        yield f"output: {expected!r} is not understood"


def _removed(observed: Observed, expected: list[str]) -> Problems:
    told = observed.went({"trashed", "purged"})
    if told != sorted(expected):
        yield f"removed {told}, expected {expected}; printed: {observed.ran.text[-2000:]}"


def _would_remove(observed: Observed, expected: list[str]) -> Problems:
    told = observed.went({"trash", "purge"})
    if told != sorted(expected):
        yield f"would remove {told}, expected {expected}"


def _kept(observed: Observed, expected: Mapping[str, str]) -> Problems:
    for rollout_id, reason in expected.items():
        if f"{rollout_id}: kept: {reason}: " not in observed.ran.stdout.decode():
            yield f"{rollout_id} is not kept for {reason}: {observed.ran.text[-2000:]}"


def _refused(observed: Observed, expected: list[Mapping[str, Any]]) -> Problems:
    """Each is a line of the report, with its place where it has one."""
    if observed.invocation.command == "convert":
        yield from _refused_documents(observed, expected)
        return
    lines = observed.ran.stdout.decode().splitlines()
    for wanted in expected:
        place = f"{wanted['file']}:{wanted['line']}: " if "file" in wanted else ""
        found = [line for line in lines if line.startswith(place) and f"{wanted['reason']}: " in line]
        found = [line for line in found if wanted.get("rollout", "") in line]
        if len(found) != wanted.get("times", len(found) or 1):
            yield f"refused {wanted}: {found or lines}"


def _refused_documents(observed: Observed, expected: list[Mapping[str, Any]]) -> Problems:
    for wanted in expected:
        place = f"{wanted['file']}: " + (f"step {wanted['step']}: " if "step" in wanted else "")
        if f"ng-capture: {place}{wanted['reason']}: " not in observed.ran.text:
            yield f"refused {wanted}: {observed.ran.text[-2000:]}"


def _stored_record_has(observed: Observed, expected: list[Mapping[str, Any]]) -> Problems:
    store = observed.workplace.root / observed.invocation.args["store"]
    lines = [json.loads(line) for path in store.glob("*.tokens.jsonl") for line in path.read_bytes().splitlines()]
    records = {record["model_call_id"]: record for record in lines}
    for wanted in expected:
        record = records.get(wanted["call"], {})
        for field, value in wanted["fields"].items():
            if record.get(field, "absent") != value:
                yield f"{wanted['call']}: {field} {record.get(field)!r}, expected {value!r}"


def _removed_temporary(observed: Observed, expected: list[str]) -> Problems:
    gone = {name.rpartition("/")[2] for name in observed.change.before.keys() - observed.change.after.keys()}
    if not set(expected) <= gone:
        yield f"left-over temporary files that are gone: {sorted(gone)}, expected {expected}"


_CHECKS: dict[str, Callable[[Observed, Any], Problems]] = {
    "exit_code": _exit_code,
    "rollouts": _rollouts,
    "rows": _rows,
    "every_generated_token_has_mask_1_in": _rows_that_train_each_token,
    "message_names": _message_names,
    "output_has_no": _output_has_no,
    "files": _files,
    "limits": _limits,
    "any_of": _any_of,
    "floats": _floats,
    "metrics": _metrics,
    "failed_checks": _failed_checks,
    "output": _output,
    "removed": _removed,
    "would_remove": _would_remove,
    "kept": _kept,
    "removed_temporary": _removed_temporary,
    "refused": _refused,
    "stored_record_has": _stored_record_has,
}
