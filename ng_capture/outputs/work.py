"""One rollout at a time, here or in several processes, with the results in the order of the tasks."""

import contextlib
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from ng_capture.errors import SurroundingsError

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
        for task in tasks:
            yield function(task)
        return
    # here: a single process need not load them
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # spawn: a fork copies locks that threads of a library hold, and then waits for them for ever
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                with _interrupts_held():
                    waiting.append(pool.submit(function, task))
                if len(waiting) >= jobs * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            message = "a worker process was killed, perhaps for want of memory"
            raise SurroundingsError(message, hint="try fewer --jobs") from error
        finally:
            for future in waiting:
                future.cancel()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes that begin in this block see no interrupt: it reaches the whole group, and one of them tells it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
