"""One task at a time, here or in several processes; real ones, of functions that every process knows."""

import os
import signal
import time
from functools import partial

import pytest

from ng_capture.errors import SurroundingsError
from ng_capture.outputs.work import in_order

HELD = {signal.SIGINT, signal.SIGTERM}


@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_results_come_in_the_order_of_the_tasks(jobs: int) -> None:
    tasks = range(-30, 0)
    assert list(in_order(abs, tasks, jobs)) == [abs(task) for task in tasks]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_task_raises_is_raised_here_after_the_results_before_it(jobs: int) -> None:
    results = in_order(int, ["1", "2", "x", "4"], jobs)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="'x'"):
        next(results)


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_are_taken_as_they_are_needed_and_not_all_at_once(jobs: int) -> None:
    """Memory follows a few rollouts, not the run (design.md, promise 10)."""
    tasks = iter(range(1_000))
    results = in_order(abs, tasks, jobs)
    assert next(results) == 0
    assert next(tasks) <= 8 * jobs
    results.close()


def test_who_stops_early_does_not_wait_for_tasks_that_have_not_begun() -> None:
    results = in_order(time.sleep, [0.0] + [0.5] * 7, 2)
    next(results)
    begun = time.monotonic()
    results.close()
    assert time.monotonic() - begun < 7 * 0.5 / 2


def test_a_process_that_is_killed_is_told_with_what_to_try() -> None:
    with pytest.raises(SurroundingsError, match="a worker process was killed") as error:
        list(in_order(os._exit, [9], 2))
    assert error.value.hint == "try fewer --jobs"


def test_processes_leave_interrupts_to_the_one_that_started_them() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    (theirs,) = in_order(partial(signal.pthread_sigmask, signal.SIG_BLOCK), [()], 2)
    assert theirs >= HELD
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
