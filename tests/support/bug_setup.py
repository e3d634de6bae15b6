"""A copy of a bug case with its setup done, and ng-capture run in it as a user runs it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.bug_case import BugCase, Invocation
from tests.support.entries import chain

PROGRAM = Path(sys.executable).parent / "ng-capture"
_SHIM = Path(__file__).parent / "fault_shim"
_PATIENCE = 300.0
# a child of a small process: what a big parent holds at a fork counts as memory of the child
_MEASURE = """
import json, resource, subprocess, sys, time
begun = time.monotonic()
code = subprocess.call(sys.argv[2:])
seconds = time.monotonic() - begun
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 if sys.platform != "darwin" else 1024) / 1024
open(sys.argv[1], "w").write(json.dumps({"seconds": seconds, "peak_rss_mib": peak}))
sys.exit(code if code >= 0 else 128 - code)
"""
_HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "ab")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(3600)
"""


@dataclass(frozen=True)
class Ran:
    """A finished run; the measured values are there where they were asked for."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All that was printed."""
        return (self.stdout + self.stderr).decode("utf-8", "replace")


@dataclass
class Workplace:
    """A copy of a case; `kill` is the setup step that kills the run, where there is one."""

    case: BugCase
    root: Path
    stack: contextlib.ExitStack
    faults: list[dict[str, Any]] = field(default_factory=list)
    stdin_closed: bool = False
    kill: dict[str, Any] | None = None

    @property
    def beside(self) -> Path:
        """A folder outside of the copy."""
        return self.root.parent

    def run(self, invocation: Invocation, *more: str, measured: bool = False) -> Ran:
        """Run the command to its end."""
        report = self.beside / "measured.json"
        launcher = [sys.executable, "-ES", "-c", _MEASURE, str(report)] if measured else []
        done = subprocess.run(
            [*launcher, *self._line(invocation, *more)],
            cwd=self.root,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
        told = json.loads(report.read_bytes()) if measured else {}
        return Ran(done.returncode, done.stdout, done.stderr, told)

    def run_and_kill(self, invocation: Invocation, after: float) -> None:
        """Run the command and send it the case's signal after so many seconds."""
        assert self.kill is not None
        with open(self.beside / "killed.txt", "wb") as nowhere:
            process = subprocess.Popen(
                self._line(invocation),
                cwd=self.root,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=nowhere,
                stderr=nowhere,
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after)
            process.send_signal(getattr(signal, self.kill["signal"]))
            process.wait(_PATIENCE)

    def _line(self, invocation: Invocation, *more: str) -> list[str]:
        line = [str(PROGRAM), *invocation.line(*more)]
        return ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *line] if self.stdin_closed else line

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NG_")}
        if self.faults:
            path = [str(_SHIM), *filter(None, [kept.get("PYTHONPATH")])]
            kept |= {"NG_TEST_FAULTS": json.dumps(self.faults), "PYTHONPATH": os.pathsep.join(path)}
        return kept


@contextlib.contextmanager
def prepared(case: BugCase, folder: Path, *, undisturbed: bool = False) -> Iterator[Workplace]:
    """The case copied into a new folder, its setup done; everything goes at the end.

    `undisturbed` leaves out what would keep the run from doing its work.
    """
    root = folder / "case"
    try:
        with contextlib.ExitStack() as stack:
            shutil.copytree(case.folder, root, symlinks=True, ignore=shutil.ignore_patterns(".keep", "expected.json"))
            workplace = Workplace(case, root, stack)
            for op in case.setup:
                if not (undisturbed and op["op"] in _DISTURBING):
                    set_up(workplace, op)
            if case.invocation.output is not None:
                (root / case.invocation.output).parent.mkdir(parents=True, exist_ok=True)
            yield workplace
    finally:
        _remove(folder)


def set_up(workplace: Workplace, op: dict[str, Any]) -> None:
    """One step of `setup`; raises AssertionError for one that is not known."""
    step = _STEPS.get(op["op"])
    assert step is not None, f"no setup step is known for {op}"
    step(workplace, {key: value for key, value in op.items() if key != "op"})


def _remove(folder: Path) -> None:
    for here, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(here, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _age(workplace: Workplace, op: dict[str, Any]) -> None:
    then = time.time() - op.get("days", 0) * 86400 - op.get("minutes", 0) * 60
    os.utime(workplace.root / op["path"], (then, then), follow_symlinks=not op.get("link_itself", False))


def _symlink(workplace: Workplace, op: dict[str, Any]) -> None:
    (workplace.root / op["path"]).symlink_to(op["target"])


def _chmod(workplace: Workplace, op: dict[str, Any]) -> None:
    if op.get("not_as_root") and os.geteuid() == 0:
        pytest.skip("permissions have no effect for root")
    (workplace.root / op["path"]).chmod(int(str(op["mode"]), 8))


def _hold_lock(workplace: Workplace, op: dict[str, Any]) -> None:
    path = workplace.root / op["path"]
    holder = subprocess.Popen([sys.executable, "-ES", "-c", _HOLD, str(path)], stdout=subprocess.PIPE)
    workplace.stack.enter_context(holder)
    workplace.stack.callback(holder.kill)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"


def _fault(workplace: Workplace, op: dict[str, Any]) -> None:
    under = {"under": str(workplace.root / op["under"])} if op.get("under") else {}
    workplace.faults.append({**op, **under})


def _kill(workplace: Workplace, op: dict[str, Any]) -> None:
    workplace.kill = op


def _stdin(workplace: Workplace, op: dict[str, Any]) -> None:
    assert op == {"value": "closed"}, f"stdin {op} is not understood"
    workplace.stdin_closed = True


def _generate(workplace: Workplace, op: dict[str, Any]) -> None:
    make = {"chain": _generate_chain, "rollouts": _generate_rollouts, "empty_files": _generate_empty_files}
    store = workplace.root / workplace.case.invocation.args["store"]
    store.mkdir(exist_ok=True)
    make[op["what"]](store, **{key: value for key, value in op.items() if key != "what"})


def _generate_chain(store: Path, *, rollout: str, calls: int, first_prompt: int, generation: int, growth: int) -> None:
    with open(store / f"{rollout}.tokens.jsonl", "wb") as file:
        file.writelines(chain(rollout, calls=calls, first_prompt=first_prompt, generation=generation, growth=growth))


def _generate_rollouts(
    store: Path, *, count: int, calls: int, name: str = "r{i}", extra_on_last: dict[str, Any] | None = None
) -> None:
    for number in range(count):
        rollout = name.replace("{i}", str(number))
        extra = extra_on_last if number == count - 1 else None
        lines = chain(rollout, calls=calls, first_prompt=40, generation=12, growth=8, extra=extra)
        (store / f"{rollout}.tokens.jsonl").write_bytes(b"".join(lines))


def _generate_empty_files(store: Path, *, count: int, name: str) -> None:
    for number in range(count):
        os.close(os.open(store / name.replace("{i}", str(number)), os.O_CREAT | os.O_WRONLY, 0o644))


_STEPS: dict[str, Callable[[Workplace, dict[str, Any]], None]] = {
    "age": _age,
    "symlink": _symlink,
    "chmod": _chmod,
    "hold_lock": _hold_lock,
    "fault": _fault,
    "kill": _kill,
    "stdin": _stdin,
    "generate": _generate,
}
_DISTURBING = frozenset({"fault", "hold_lock", "kill", "chmod"})
