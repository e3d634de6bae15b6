"""The health document: metrics, examples, checks, notices, and the same metrics by model, task, attempt or group."""

import msgspec

from ng_capture import __version__
from ng_capture.outputs.health.by import By
from ng_capture.verdicts.health.gates import CheckResult
from ng_capture.verdicts.health.metrics import HealthMetrics
from ng_capture.verdicts.health.notices import Notice
from ng_capture.verdicts.health.tally import Example

HEALTH_SCHEMA = "ng-capture.health/1"


class Part(msgspec.Struct, frozen=True):
    """The metrics of the rollouts of one model, task, attempt or group; `key` is null where a rollout names none."""

    key: str | None
    metrics: HealthMetrics


class Breakdown(msgspec.Struct, frozen=True):
    """The parts of a run; a rollout that called several models is of the part that names them all."""

    by: By
    parts: tuple[Part, ...]


class HealthDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`health -f json`. `failed_checks` are the names of the checks that failed."""

    schema: str = HEALTH_SCHEMA
    tool_version: str = __version__
    paths: tuple[str, ...]
    metrics: HealthMetrics
    checks: tuple[CheckResult, ...]
    failed_checks: tuple[str, ...]
    notices: tuple[Notice, ...]
    examples: dict[str, tuple[Example, ...]]
    breakdown: Breakdown | None = None

    @property
    def failed(self) -> list[CheckResult]:
        return [check for check in self.checks if check.status == "failed"]
