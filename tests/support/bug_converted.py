"""What a `convert` case of `bugs/` expects of the files that were written."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.bug_case import Invocation
from tests.support.bug_setup import Workplace

Problems = Iterator[str]
# what holds token records whole, each with what reads it back
_WHOLE = {"jsonl": "jsonl", "tokens": "tokens", "atif": "atif"}


def documents(workplace: Workplace, output: str) -> dict[str, Any]:
    """The JSON documents of an output file or folder, by file; of several lines a list."""
    path = workplace.root / output
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    return {file.name: _read(file) for file in files if file.is_file()}


def _read(path: Path) -> Any:
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return lines if path.suffix == ".jsonl" else lines[0]


def problems_of_output(workplace: Workplace, invocation: Invocation, expected: Mapping[str, Any]) -> Problems:
    """Whatever is not as expected in what was written."""
    found = documents(workplace, invocation.output or "")
    for key, wanted in expected.items():
        check = _CHECKS.get(key)
        if check is None:
            yield f"output: nothing checks {key!r}"
        else:
            got = check(workplace, invocation, found)
            if got != _WORDS.get(wanted if isinstance(wanted, str) else "", wanted):
                yield f"output: {key} {got!r}, expected {wanted!r}"


def problems_of_the_way_back(workplace: Workplace, invocation: Invocation) -> Problems:
    """There and back in every contract that holds records whole: the same records, field by field."""
    before = _records(workplace.root / invocation.args["store"])
    for there, back in _WHOLE.items():
        out, again = f"there-{there}/", f"back-{there}/"
        for line in (
            Invocation("convert", {"store": invocation.args["store"], "to": there, "out": out}),
            Invocation("convert", {"store": out, "from": back, "to": "tokens", "out": again}),
        ):
            ran = workplace.run(line)
            if ran.exit_code != 0:
                yield f"{there}: exit code {ran.exit_code}: {ran.text[-1000:]}"
        after = _records(workplace.root / again)
        if after != before:
            yield f"{there}: other records: {after}"


def _records(store: Path) -> dict[str, Any]:
    return {path.name: _read(path) for path in sorted(store.glob("*.tokens.jsonl"))}


def _only(found: dict[str, Any]) -> Any:
    assert len(found) == 1, list(found)
    return next(iter(found.values()))


def _agent_steps(found: dict[str, Any]) -> list[Any]:
    return [step for step in _only(found)["steps"] if step["source"] == "agent"]


def _completion_ids(_: Workplace, __: Invocation, found: dict[str, Any]) -> Any:
    steps = _agent_steps(found)
    for step in steps:
        assert len(step["metrics"]["completion_token_ids"]) == len(step["metrics"]["logprobs"])
    return [step["metrics"]["completion_token_ids"] for step in steps]


def _total_steps(_: Workplace, __: Invocation, found: dict[str, Any]) -> Any:
    document = _only(found)
    assert [step["step_id"] for step in document["steps"]] == list(range(1, len(document["steps"]) + 1))
    return document["final_metrics"]["total_steps"] == len(document["steps"])


def _ids(workplace: Workplace, invocation: Invocation, found: dict[str, Any]) -> Any:
    ids = [document["trajectory_id"] for document in found.values()]
    workplace.run(invocation)
    again = [document["trajectory_id"] for document in documents(workplace, invocation.output or "").values()]
    return len(set(ids)) == len(ids) and again == ids


def _with_field(_: Workplace, __: Invocation, found: dict[str, Any]) -> Any:
    return {"routed_experts": [row["rollout_id"] for row in _only(found) if row.get("routed_experts") is not None]}


def _call(field: str) -> Any:
    def told(workplace: Workplace, invocation: Invocation, _: dict[str, Any]) -> Any:
        return _steps(workplace, invocation)[0][field]

    return told


def _steps(workplace: Workplace, invocation: Invocation) -> Any:
    ran = workplace.run(Invocation("steps", {"in": invocation.output}), "-f", "jsonl")
    return json.loads(ran.stdout)["steps"]


_WORDS: dict[str, Any] = {
    "number of steps": True,
    "different from each other, equal on a second run": True,
}
_CHECKS: dict[str, Any] = {
    "format": lambda _, __, found: next(iter(found.values()))["schema_version"],
    "files": lambda _, __, found: len(found),
    "agent_steps": lambda _, __, found: len(_agent_steps(found)),
    "completion_ids": _completion_ids,
    "total_steps": _total_steps,
    "total_completion_tokens": lambda _, __, found: _only(found)["final_metrics"]["total_completion_tokens"],
    "total_prompt_tokens": lambda _, __, found: _only(found)["final_metrics"]["total_prompt_tokens"],
    "ids": _ids,
    "records": lambda _, __, found: len(_only(found)),
    "with_field": _with_field,
    "value": lambda _, __, found: next(row["routed_experts"] for row in _only(found) if row.get("routed_experts")),
    "calls": lambda workplace, invocation, _: len(_steps(workplace, invocation)),
    "tokens_in": _call("tokens_in"),
    "tokens_out": _call("tokens_out"),
    "finish_reason": _call("finish_reason"),
}
