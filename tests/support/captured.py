"""Captures through the contracts, as `convert` and `validate` take them.

converted(directory, "atif")                        # what became of each rollout
document(directory, "atif")                         # the one document of the one rollout
steps(document)                                     # (source, message, calls, results) of each ATIF step
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ng_capture.contracts.captures.contracts import CAPTURE
from ng_capture.contracts.captures.validation import validate
from ng_capture.contracts.conversion import Conversion, Converted
from ng_capture.contracts.interface import Options
from ng_capture.contracts.registry import reader_of, writer_of
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from tests.support.forge import Row, in_lines

ROLLOUT = "r-1"


def converted(source: Path, to: str, contract: str = CAPTURE.name, **options: Any) -> list[Converted]:
    """What became of every document of a source."""
    conversion = Conversion(reader_of(contract), writer_of(to), Options(**options))
    return list(conversion.convert(Source(str(source))))


def written(source: Path, to: str, contract: str = CAPTURE.name, **options: Any) -> Converted:
    """The one document of a source, which must have been written."""
    (one,) = converted(source, to, contract, **options)
    assert one.written is not None, one.faults
    return one


def document(source: Path, to: str, contract: str = CAPTURE.name, **options: Any) -> Any:
    """The same as data; a list where there are several lines."""
    one = written(source, to, contract, **options).written
    assert one is not None
    values = [json.loads(each) for each in one.documents]
    return values[0] if len(values) == 1 else values


def put(directory: Path, rows: Iterable[Row | bytes], rollout_id: str = ROLLOUT, kind: str = "capture") -> Path:
    """A file of lines in a capture directory, which is given back."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = (row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)
    (directory / f"{rollout_id}.{kind}.jsonl").write_bytes(in_lines(lines))
    return directory


def steps(trajectory: Any) -> list[tuple[Any, ...]]:
    """Who, what, the ids of its calls, and the results with the calls that they answer."""
    return [
        (
            step["source"],
            step["message"],
            [call["tool_call_id"] for call in step.get("tool_calls", ())],
            [
                (each.get("source_call_id"), each.get("content"))
                for each in step.get("observation", {}).get("results", ())
            ],
        )
        for step in trajectory["steps"]
    ]


def codes(one: Converted) -> dict[str, int]:
    """How often each loss was told."""
    told: dict[str, int] = {}
    for loss in one.losses:
        told[loss.code] = told.get(loss.code, 0) + loss.count
    return told


def faults_in(source: Path) -> list[Fault]:
    """Every fault of a source."""
    return list(validate(Source(str(source))))


def rules_of(faults: Iterable[Fault]) -> list[tuple[str, str, int | None]]:
    """Rule, path and line of each."""
    return [(fault.rule, fault.path, fault.line) for fault in faults]
