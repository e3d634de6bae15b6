"""A case whose run is killed: at many moments, spread over the time that an undisturbed run takes."""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.bug_case import Invocation
from tests.support.bug_files import Change, tree_of
from tests.support.bug_setup import Workplace

_MOMENTS = 20
_EXPECTED = frozenset({"moments", "files"})


def problems_of_kills(workplace: Workplace, invocation: Invocation, expected: Mapping[str, Any]) -> Iterator[str]:
    """Kill the run at every moment; what a killed run leaves is there for the next command after the last one."""
    unknown = expected.keys() - _EXPECTED
    if unknown or workplace.kill is None:
        yield f"killed: nothing checks {sorted(unknown)}" if unknown else "killed, but no setup step kills"
        return
    output = workplace.root / str(invocation.output)
    kept = workplace.beside / "as before"
    shutil.copytree(output.parent, kept, symlinks=True)
    begun = time.monotonic()
    undisturbed = workplace.run(invocation)
    seconds = time.monotonic() - begun
    if undisturbed.exit_code:
        yield f"killed: the undisturbed run ends with {undisturbed.exit_code}: {undisturbed.text[-2000:]}"
    whole = {path: path.read_bytes() for path in output.parent.iterdir() if path.is_file()}
    moments = expected.get("moments", _MOMENTS)
    for moment in range(moments):
        shutil.rmtree(output.parent)
        shutil.copytree(kept, output.parent, symlinks=True)
        before = tree_of(workplace.root)
        after = seconds * (moment + 0.5) / moments
        workplace.run_and_kill(invocation, after)
        change = Change(
            root=workplace.root,
            before=before,
            after=tree_of(workplace.root),
            outputs=(str(invocation.output),),
            complete=lambda path: whole.get(workplace.root / path),
        )
        problems = [*change.problems(expected["files"]), *_receipt_without_output(output)]
        yield from (f"killed after {after:.2f} s of {seconds:.2f}: {problem}" for problem in problems)


def _receipt_without_output(output: Path) -> Iterator[str]:
    """A receipt implies its output (design.md, promise 3)."""
    receipt = output.with_name(f"{output.name}.receipt.json")
    if not receipt.exists():
        return
    described = json.loads(receipt.read_bytes())["output"]["sha256"]
    if not output.exists() or hashlib.sha256(output.read_bytes()).hexdigest() != described:
        yield "a receipt stands beside another output than its own"
