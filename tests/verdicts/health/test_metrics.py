"""The names of the metrics."""

from ng_capture.outputs.shapes.health import HealthMetricsShape
from ng_capture.verdicts.health.metrics import METRICS
from ng_capture.verdicts.health.tally import Tally
from ng_capture.verdicts.metrics import Metrics


def test_the_published_shape_has_the_same_metrics_in_the_same_order() -> None:
    assert tuple(HealthMetricsShape.model_fields) == METRICS


def test_every_metric_of_gym_is_one_of_health() -> None:
    assert set(Metrics.__struct_fields__) <= set(METRICS)


def test_over_nothing_rollouts_are_0_and_everything_else_is_unknown() -> None:
    metrics = Tally().metrics()
    known = {name: getattr(metrics, name) for name in METRICS if getattr(metrics, name) is not None}
    counts = ("rollouts", "with_calls", "with_capture", "trainable", "masked", "retired", "unread")
    assert known == dict.fromkeys(counts, 0) | {"reasons": {}}


def test_where_no_tokens_are_wanted_no_verdict_is_counted() -> None:
    metrics = Tally(judged=False).metrics()
    assert (metrics.rollouts, metrics.trainable, metrics.masked, metrics.mask_fraction) == (0, None, None, None)
