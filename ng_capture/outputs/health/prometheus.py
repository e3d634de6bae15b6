"""Health as gauges in the text form of Prometheus, for the textfile collector of a node exporter."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from ng_capture.outputs.health.document import HealthDocument
from ng_capture.outputs.shapes.health import DESCRIPTIONS
from ng_capture.verdicts.health.metrics import METRICS
from ng_capture.visible import visible

PREFIX = "ng_capture_health_"
_LABELS = {
    "reasons": "reason",
    "findings": "reason",
    "lost_by_reason": "reason",
    "parent_link_failures": "failure",
    "models": "model",
    "error_categories": "category",
}
_LISTS = frozenset({"missing_captures", "orphan_captures"})


def prometheus(document: HealthDocument, now: float) -> bytes:
    """Every known metric as a gauge; unknown ones are left out, since a gauge cannot be unknown. `now` in seconds."""
    registry = CollectorRegistry()
    told = msgspec.to_builtins(document.metrics)
    for name in METRICS:
        value = told[name]
        if value is None or name in _LISTS:
            continue
        if isinstance(value, dict):
            _family(registry, name, value)
        else:
            Gauge(PREFIX + name, DESCRIPTIONS[name], registry=registry).set(value)
    checks = Gauge(PREFIX + "check_failed", "1 for a check or gate that failed, else 0.", ["check"], registry=registry)
    for check in document.checks:
        checks.labels(visible(check.name)).set(check.name in document.failed_checks)
    Gauge(PREFIX + "last_run_timestamp_seconds", "When these values were taken.", registry=registry).set(now)
    return generate_latest(registry)


def _family(registry: CollectorRegistry, name: str, value: Mapping[str, Any]) -> None:
    """A metric with members as one gauge with labels."""
    members: Iterable[tuple[tuple[str, ...], float]]
    if name == "terminal_attribution":
        labels = ["what", "value"]
        members = (((what, key), number) for what, counts in value.items() for key, number in counts.items())
    elif name == "sampling":
        labels = ["model", "parameter", "value"]
        members = (
            ((model, parameter, key), number)
            for model, asked in value.items()
            for parameter, values in asked.items()
            for key, number in values.items()
        )
    else:
        labels = [_LABELS.get(name, "quantile")]
        members = (((key,), number) for key, number in value.items())
    gauge = Gauge(PREFIX + name, DESCRIPTIONS[name], labels, registry=registry)
    for values, number in members:
        gauge.labels(*map(visible, values)).set(number)
