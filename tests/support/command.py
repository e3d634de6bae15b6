"""The installed command, as a user runs it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).parent / "ng-capture")


@dataclass(frozen=True)
class Run:
    """What a finished command left."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def strict_json(text: str | bytes) -> Any:
    """The value of a JSON text; raises AssertionError for NaN and Infinity, which are no JSON."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def run(*arguments: object, cwd: Path | None = None, **environment: str) -> Run:
    """Run `ng-capture` with these arguments; extra keywords are environment variables.

    How wide somebody's terminal is never matters.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        cwd=cwd,
        env={**inherited, **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode())
