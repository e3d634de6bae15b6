"""Documents read and written in a test: sources of lines or bytes, what became of them, how two documents differ."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ng_capture.contracts.conversion import Conversion, Converted
from ng_capture.contracts.interface import Options, Read, Refused
from ng_capture.contracts.registry import reader_of, writer_of
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source

DEFAULT = Options()


def as_lines(values: list[Any]) -> bytes:
    """JSON values, one a line."""
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@contextmanager
def held(data: bytes, name: str = "x.jsonl") -> Iterator[Source]:
    """A file that holds these bytes, for as long as it is looked at."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield Source(str(path))


def outcomes_of(contract: str, values: list[Any] | bytes, options: Options = DEFAULT) -> list[Read | Refused]:
    """What reading these lines gives."""
    with held(values if isinstance(values, bytes) else as_lines(values)) as source:
        return list(reader_of(contract).read(source, options))


def read_one(contract: str, values: list[Any] | bytes, options: Options = DEFAULT) -> Read:
    """The only episode of these lines."""
    (outcome,) = outcomes_of(contract, values, options)
    assert isinstance(outcome, Read), outcome
    return outcome


def refused(contract: str, values: list[Any] | bytes) -> list[str]:
    """The rules for which nothing of these lines is read."""
    (outcome,) = outcomes_of(contract, values)
    assert isinstance(outcome, Refused), outcome
    return [fault.rule for fault in outcome.faults]


def faults_of(contract: str, values: list[Any] | bytes) -> list[Fault]:
    """All faults of these lines."""
    check = reader_of(contract).validate
    assert check is not None
    with held(values if isinstance(values, bytes) else as_lines(values)) as source:
        return list(check(source))


def converted(contract: str, target: str, values: list[Any] | bytes) -> list[Converted]:
    """These lines in another contract."""
    with held(values if isinstance(values, bytes) else as_lines(values)) as source:
        return list(Conversion(reader_of(contract), writer_of(target)).convert(source))


def document_of(contract: str, target: str, values: list[Any] | bytes) -> Any:
    """The only document that these lines make."""
    (done,) = converted(contract, target, values)
    assert done.written is not None, done.faults
    return json.loads(done.written.documents[0])


def differences(expected: Any, found: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two documents differ: a JSON pointer, what was expected, what is there; None for nothing."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            yield from differences(expected.get(key), found.get(key), f"{path}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for at, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{path}/{at}")
    elif expected != found or type(expected) is not type(found):
        yield path, expected, found


def codes(outcome: Read | Refused) -> list[str]:
    """The codes of the losses of reading, each once, in order."""
    return sorted({loss.code for loss in outcome.losses})
