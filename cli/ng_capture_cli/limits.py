"""Limits as a command line writes them (`METRIC=X`), and the earlier document that they compare with."""

import difflib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_type_hints

import msgspec

from ng_capture.errors import UsageError
from ng_capture.records.json_text import decode_as, printable
from ng_capture.verdicts.health.gates import GYM_MIN_SAMPLES, Bound, Gate
from ng_capture.verdicts.health.metrics import METRICS, HealthMetrics
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
            name, equals, limit = printable(text).partition("=")
            if not equals:
                raise UsageError(f"{option} {text}: METRIC=X is wanted", hint=f"{option} mask_fraction=0.05")
            _check(name, option)
            gates.append(Gate(name, bound, _finite(limit, f"{option} {text}"), min_samples or 0))
    return tuple(gates)


def read_baseline(path: str) -> Mapping[str, Any]:
    """The metrics of an earlier health document; raises UsageError for any other file.

    A metric that the earlier version did not have is unknown.
    """
    try:
        document = decode_as(Path(path).read_bytes(), _Earlier)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise _no_document(path, str(error)) from error
    try:
        metrics = {name: msgspec.convert(document.metrics.get(name), hint) for name, hint in _KINDS.items()}
    except msgspec.ValidationError as error:
        raise _no_document(path, str(error)) from error
    told: Mapping[str, Any] = msgspec.to_builtins(metrics)
    return told


class _Earlier(msgspec.Struct, frozen=True):
    schema: Literal["ng-capture.health/1"]
    metrics: dict[str, Any]


_KINDS = {name: hint | None for name, hint in get_type_hints(HealthMetrics).items()}


def _no_document(path: str, why: str) -> UsageError:
    return UsageError(f"{path}: no health document: {why}", hint=f"ng-capture health -f json <paths> -o {path}")


def _check(name: str, option: str) -> None:
    if is_number(name):
        return
    metric = name.partition(".")[0]
    close = difflib.get_close_matches(metric, list(filter(is_number, METRICS)), n=3)
    hint = f"did you mean {', '.join(close)}?" if close else "ng-capture schema health-document lists all metrics"
    if any(map(is_number, (f"{metric}.p50", f"{metric}.torn_tail", f"{metric}.timeout", f"{metric}.method.none"))):
        hint = f"members of {metric} are named {metric}.<member>: see ng-capture health -f json"
    raise UsageError(f"{option} {name}: no metric that is a number", hint=hint)


def _finite(text: str, place: str) -> float:
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise UsageError(f"{place}: the limit is no number")
    return limit
