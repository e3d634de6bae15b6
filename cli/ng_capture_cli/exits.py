"""Exit codes (design.md, Command line) and how a run ends."""

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, Protocol, runtime_checkable

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture_cli.terminal import tell, tell_error

P = ParamSpec("P")

DONE = 0
FINDINGS = 1
WRONG_USE = 2
SURROUNDINGS = 3
BUG = 70
_SIGNALLED = 128


@runtime_checkable
class _Usage(Protocol):
    """What the option parser raises for words that it cannot read; it knows how to say so."""

    exit_code: int

    def show(self) -> None: ...


class Terminated(BaseException):
    """SIGTERM arrived: unwind like an interrupt, so that temporary files go."""


def run(command: Callable[[], int]) -> int:
    """The exit code of a command: every failure is one line, never a traceback for bad input."""
    signal.signal(signal.SIGTERM, _raise_terminated)
    try:
        code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        # the option parser turns the interrupt of a running command into its code
        return _interrupted() if code == _SIGNALLED + signal.SIGINT else code
    except UsageError as error:
        tell_error(error.message, error.hint)
        return WRONG_USE
    except SurroundingsError as error:
        tell_error(error.message, error.hint)
        return SURROUNDINGS
    except BrokenPipeError:
        return _reader_left()
    except KeyboardInterrupt:
        return _interrupted()
    except Terminated:
        tell("ng-capture: terminated, nothing half written")
        return _SIGNALLED + signal.SIGTERM
    except OSError as error:
        tell_error(f"{error.filename or 'output'}: {error.strerror or error}")
        return SURROUNDINGS
    except Exception as error:
        if isinstance(error, _Usage):
            error.show()
            return WRONG_USE
        traceback.print_exc()
        tell_error("this is a bug of ng-capture", "please report it with the lines above")
        return BUG


def quietly(command: Callable[P, int]) -> Callable[P, int]:
    """A command that ends without a word when the reader of its output has left (the option parser says 1 to that)."""

    @functools.wraps(command)
    def ending(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            code = command(*args, **kwargs)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except BrokenPipeError:
            return _reader_left()

    return ending


def _reader_left() -> int:
    # what Python would flush at exit must not fail again
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


def _interrupted() -> int:
    tell("ng-capture: interrupted, nothing half written")
    return _SIGNALLED + signal.SIGINT


def _raise_terminated(_signum: int, _frame: FrameType | None) -> None:
    raise Terminated
