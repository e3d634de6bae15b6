"""Add up the health of rollouts from any source, and judge the run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ng_capture.natural_order import natural_key
from ng_capture.outputs.health.by import By
from ng_capture.outputs.health.captures import HealthTask, health_rollout
from ng_capture.outputs.health.document import Breakdown, HealthDocument, Part
from ng_capture.outputs.health.expectation import Expectation
from ng_capture.outputs.verify import Unread, VerifyTask
from ng_capture.verdicts.health.gates import Gate, check_run, judge_gates
from ng_capture.verdicts.health.notices import notices
from ng_capture.verdicts.health.rollout import RolloutHealth
from ng_capture.verdicts.health.tally import Tally
from ng_capture.verdicts.judging import Judging


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a run: limits, an earlier run to compare with, what was expected, what to break it down by."""

    paths: tuple[str, ...]
    gates: tuple[Gate, ...] = ()
    baseline: Mapping[str, Any] | None = None
    expected_ids: frozenset[str] | None = None
    expected_number: int | None = None
    by: By | None = None
    raw_only: bool = False


def check_health(
    rollouts: Iterable[RolloutHealth | Unread], question: Question, watch: Callable[[RolloutHealth | Unread], None]
) -> HealthDocument:
    """The health of a run; `watch` sees every rollout as it goes by, those that did not come included."""
    tally = Tally(judged=not question.raw_only)
    parts: dict[str | None, Tally] = {}
    expectation = _expectation(question)
    for rollout in _all(rollouts, expectation, question):
        watch(rollout)
        if isinstance(rollout, Unread):
            tally.add_unread(rollout.rollout_id)
            continue
        tally.add(rollout)
        if question.by is not None:
            key = _key(rollout, question.by)
            parts.setdefault(key, Tally(judged=not question.raw_only)).add(rollout)
    if expectation is not None:
        unnamed = expectation.unnamed()
        tally.add_missing(unnamed)
        if question.by is not None and unnamed:
            parts.setdefault(None, Tally(judged=not question.raw_only)).add_missing(unnamed)
    metrics = tally.metrics(expectation.outcome() if expectation is not None else None)
    checks = [
        *check_run(metrics, tally.examples),
        *judge_gates(question.gates, metrics, tally.examples, question.baseline),
    ]
    return HealthDocument(
        paths=question.paths,
        metrics=metrics,
        checks=tuple(checks),
        failed_checks=tuple(dict.fromkeys(check.name for check in checks if check.status == "failed")),
        notices=tuple(notices(metrics)),
        examples=tally.examples,
        breakdown=None if question.by is None else Breakdown(question.by, _parts(parts)),
    )


def _expectation(question: Question) -> Expectation | None:
    if question.expected_ids is not None:
        return Expectation(ids=question.expected_ids)
    return None if question.expected_number is None else Expectation(number=question.expected_number)


def _all(
    rollouts: Iterable[RolloutHealth | Unread], expectation: Expectation | None, question: Question
) -> Iterator[RolloutHealth | Unread]:
    """The rollouts that came, then those asked for that did not: judged like an empty capture, which they are."""
    for rollout in rollouts:
        if expectation is not None:
            captured = isinstance(rollout, Unread) or rollout.captured
            expectation.see(rollout.rollout_id, captured=captured)
        yield rollout
    for rollout_id in expectation.absent() if expectation is not None else ():
        yield health_rollout(HealthTask(VerifyTask(rollout_id, None, None, Judging()), question.raw_only))


def _key(rollout: RolloutHealth, by: By) -> str | None:
    if by is By.MODEL:
        models = rollout.measures.models if rollout.measures is not None else {}
        return " + ".join(models) or None
    place = rollout.stands_at
    return {By.TASK: place.task, By.GROUP: place.group, By.ATTEMPT: str(place.attempt)}[by]


def _parts(parts: Mapping[str | None, Tally]) -> tuple[Part, ...]:
    keys = sorted((key for key in parts if key is not None), key=natural_key)
    if None in parts:
        return (*(Part(key, parts[key].metrics()) for key in keys), Part(None, parts[None].metrics()))
    return tuple(Part(key, parts[key].metrics()) for key in keys)
