"""What a run did, read by the parser of Prometheus itself."""

from prometheus_client.parser import text_string_to_metric_families

from ng_capture.retention.gauges import gauges
from ng_capture.verdicts.reasons import REASONS


def samples(data: bytes) -> dict[tuple[str, str], float]:
    return {
        (sample.name.removeprefix("ng_capture_gc_"), sample.labels.get("reason", "")): sample.value
        for family in text_string_to_metric_families(data.decode())
        for sample in family.samples
    }


def test_every_number_is_a_gauge_with_words() -> None:
    data = gauges({"trashed": 3, "purged": 1, "failed": 2, "bytes": 10**12}, {"young": 4, "busy": 1}, 7, 1234.5)
    assert samples(data) == {
        ("trashed", ""): 3,
        ("purged", ""): 1,
        ("failed", ""): 2,
        ("bytes", ""): 10**12,
        ("kept", "young"): 4,
        ("kept", "busy"): 1,
        ("over_budget_bytes", ""): 7,
        ("last_run_timestamp_seconds", ""): 1234.5,
    }
    families = list(text_string_to_metric_families(data.decode()))
    assert all(family.type == "gauge" and family.documentation.endswith(".") for family in families)


def test_what_did_not_happen_is_0_and_a_budget_that_nobody_gave_is_absent() -> None:
    told = samples(gauges({}, {}, None, 1.0))
    assert [value for (name, _), value in told.items() if not name.startswith("last")] == [0, 0, 0, 0]
    assert "over_budget_bytes" not in {name for name, _ in told}


def test_labels_are_the_reasons_of_the_registry() -> None:
    told = samples(gauges({}, dict.fromkeys(REASONS, 1), None, 1.0))
    assert {reason for name, reason in told if name == "kept"} == set(REASONS)
