"""One rollout at a time, here or in several processes, with the results in the order of the tasks."""

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Task = TypeVar("Task")
Result = TypeVar("Result")

_AHEAD = 4


def in_order(function: Callable[[Task], Result], tasks: Iterable[Task], jobs: int) -> Iterator[Result]:
    """`function` of every task, in order; with `jobs` above 1 in that many processes, a few tasks ahead.

    `function` must be importable by name, tasks and results picklable. What it raises is raised here.
    """
    if jobs <= 1:
        yield from map(function, tasks)
        return
    # here: a single process need not load them
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # spawn: a fork copies locks that threads of a library hold, and then waits for them for ever
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_leave_interrupts_to_the_parent) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(function, task))
                if len(waiting) >= jobs * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _leave_interrupts_to_the_parent() -> None:
    """An interrupt from the terminal reaches every process; one of them tells it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
