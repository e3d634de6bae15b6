"""The folder `bugs/` of the corpus: a case, and the command line that its `command` and `args` stand for."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_OF_A_CASE = frozenset(
    {"id", "summary", "why", "right", "source", "also", "kind", "command", "args", "setup", "expected"}
)


@dataclass(frozen=True)
class Invocation:
    """A command of ng-capture and its arguments, by meaning."""

    command: str
    args: Mapping[str, Any]

    def but(self, **args: Any) -> "Invocation":
        """The same with other arguments."""
        return replace(self, args={**self.args, **args})

    def without(self, *names: str) -> "Invocation":
        return replace(self, args={name: value for name, value in self.args.items() if name not in names})

    @property
    def available(self) -> bool:
        return self.command in _COMMANDS

    @property
    def output(self) -> str | None:
        """The file that the command writes, as a path in the case."""
        return self.args.get("out")

    def line(self, *more: str) -> list[str]:
        """What to type behind `ng-capture`."""
        return [self.command, *_COMMANDS[self.command](dict(self.args)), *more]

    def as_verify(self) -> "Invocation":
        """The reading run with the same options; of what was converted into a capture."""
        if self.command == "convert":
            return Invocation("verify", {"store": self.output})
        return Invocation("verify", {name: value for name, value in self.args.items() if name in _JUDGING})

    def as_rebuild(self, output: Path) -> "Invocation":
        return Invocation("rebuild", {**self.as_verify().args, "out": str(output)})


@dataclass(frozen=True)
class BugCase:
    """One folder of `bugs/`; `right` says in words what must come out."""

    folder: Path
    right: str
    invocation: Invocation
    setup: list[dict[str, Any]]
    expected: dict[str, Any]


def bug_case(folder: Path) -> BugCase:
    """The case of a folder; raises AssertionError for a key that nothing reads."""
    said = json.loads((folder / "expected.json").read_bytes())
    unknown = said.keys() - _OF_A_CASE
    assert not unknown, f"the case says {sorted(unknown)}, which nothing reads"
    return BugCase(
        folder=folder,
        right=said["right"],
        invocation=Invocation(said["command"], said["args"]),
        setup=said.get("setup", []),
        expected=said["expected"],
    )


def _judging(args: dict[str, Any]) -> list[str]:
    """Options that verify and rebuild share; takes them out of `args`."""
    line = [str(args.pop("store"))]
    for name, option in _VALUES.items():
        if args.get(name) is not None:
            line += [option, str(args[name])]
        args.pop(name, None)
    for name, option in _FLAGS.items():
        if args.pop(name, False):
            line.append(option)
    return line


def _verify(args: dict[str, Any]) -> list[str]:
    return _all_read(args, _judging(args))


def _rebuild(args: dict[str, Any]) -> list[str]:
    line = [*_judging(args), "--to", "rows", "-o", args.pop("out")]
    return _all_read(args, line)


def _health(args: dict[str, Any]) -> list[str]:
    line = _judging(args)
    line += ["--expect", args.pop("expect")] if "expect" in args else []
    line += ["--raw-only"] if args.pop("raw_only", False) else []
    for metric, limit in args.pop("limits", {}).items():
        line += ["--max", f"{metric}={limit}"]
    return _all_read(args, line)


def _ingest(args: dict[str, Any]) -> list[str]:
    return _all_read(args, [*args.pop("in"), "--to", args.pop("store")])


def _convert(args: dict[str, Any]) -> list[str]:
    line = [str(args.pop("store", None) or args.pop("in"))]
    for name, option in (("from", "--from"), ("to", "--to"), ("out", "-o"), ("rollout", "--include")):
        line += [option, str(args.pop(name))] if name in args else []
    return _all_read(args, line)


def _steps(args: dict[str, Any]) -> list[str]:
    return _all_read(args, [args.pop("in")])


def _gc(args: dict[str, Any]) -> list[str]:
    line = [str(args.pop("store"))]
    for name, option in (("older_than_days", "--older-than"), ("tombstone_age_days", "--tombstone-age")):
        line += [option, f"{args.pop(name)}d"] if name in args else []
    for name in ("dry_run", "include_masked", "without_receipt"):
        line += [f"--{name.replace('_', '-')}"] if args.pop(name, False) else []
    return _all_read(args, line)


def _all_read(args: dict[str, Any], line: list[str]) -> list[str]:
    assert not args, f"no option is known for {sorted(args)}"
    return line


_VALUES = {
    "rollout": "--include",
    "rollouts": "--rollouts",
    "policy": "--policy",
    "policy_model": "--policy-model",
}
_FLAGS = {"infer_links": "--infer-links"}
_JUDGING = frozenset({"store", *_VALUES, *_FLAGS})
_COMMANDS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "verify": _verify,
    "rebuild": _rebuild,
    "health": _health,
    "gc": _gc,
    "ingest": _ingest,
    "convert": _convert,
    "steps": _steps,
}
