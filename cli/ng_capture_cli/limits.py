"""Limits as a command line writes them (`METRIC=X`), and the earlier document that they compare with."""

import difflib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from ng_capture.errors import UsageError
from ng_capture.outputs.health.document import HEALTH_SCHEMA
from ng_capture.verdicts.health.gates import GYM_MIN_SAMPLES, Bound, Gate
from ng_capture.verdicts.health.metrics import METRICS
from ng_capture.verdicts.health.names import is_number


def limits(
    max_mask_fraction: float | None,
    min_samples: int | None,
    bounds: Mapping[Bound, Iterable[str] | None],
) -> tuple[Gate, ...]:
    """All gates of a command line; raises UsageError for a name that is no metric, or a limit that is no number.

    The mask fraction has Gym's floor of samples (capture-files.md 6.5); a floor that is given holds for every gate.
    """
    gates = []
    if max_mask_fraction is not None:
        floor = GYM_MIN_SAMPLES if min_samples is None else min_samples
        gates.append(Gate("mask_fraction", Bound.MAX, _finite(str(max_mask_fraction), "--max-mask-fraction"), floor))
    for bound, texts in bounds.items():
        option = f"--{bound.replace('_', '-')}"
        for text in texts or ():
            name, equals, limit = text.partition("=")
            if not equals:
                raise UsageError(f"{option} {text}: METRIC=X is wanted", hint=f"{option} mask_fraction=0.05")
            _check(name, option)
            gates.append(Gate(name, bound, _finite(limit, f"{option} {text}"), min_samples or 0))
    return tuple(gates)


def read_baseline(path: str) -> Mapping[str, Any]:
    """The metrics of an earlier health document; raises UsageError for any other file."""
    try:
        document = orjson.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read as a health document: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != HEALTH_SCHEMA:
        raise UsageError(f"{path}: no health document", hint=f"ng-capture health -f json <paths> -o {path}")
    metrics: Mapping[str, Any] = document["metrics"]
    return metrics


def _check(name: str, option: str) -> None:
    if is_number(name):
        return
    close = difflib.get_close_matches(name.partition(".")[0], METRICS, n=3)
    hint = f"did you mean {', '.join(close)}?" if close else "ng-capture schema health-document lists all metrics"
    raise UsageError(f"{option} {name}: no metric that is a number", hint=hint)


def _finite(text: str, place: str) -> float:
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise UsageError(f"{place}: the limit is no number")
    return limit
