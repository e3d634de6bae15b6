"""What a cleaning run did, as gauges for the textfile collector of a node exporter."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge, generate_latest

_PREFIX = "ng_capture_gc_"
_COUNTS = {
    "trashed": "Rollouts moved to the trash by the last run.",
    "purged": "Tombstones removed by the last run.",
    "failed": "Rollouts that the system refused to move.",
    "bytes": "Bytes moved or removed by the last run.",
}


def gauges(counts: Mapping[str, int], kept: Mapping[str, int], over: int | None, now: float) -> bytes:
    """The text file; `now` in seconds since 1970."""
    registry = CollectorRegistry()
    for name, words in _COUNTS.items():
        Gauge(_PREFIX + name, words, registry=registry).set(counts.get(name, 0))
    reasons = Gauge(_PREFIX + "kept", "Rollouts that stay, by reason.", ["reason"], registry=registry)
    for reason, number in kept.items():
        reasons.labels(reason).set(number)
    if over is not None:
        Gauge(_PREFIX + "over_budget_bytes", "Bytes that do not fit --max-bytes.", registry=registry).set(over)
    Gauge(_PREFIX + "last_run_timestamp_seconds", "When the last run ended.", registry=registry).set(now)
    return generate_latest(registry)
