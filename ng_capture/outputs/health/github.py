"""Health as annotations of GitHub Actions: workflow commands on standard output, the worst first."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from ng_capture.outputs.health.document import HealthDocument
from ng_capture.outputs.health.words import why_masked
from ng_capture.verdicts.health.tally import Example
from ng_capture.visible import visible

SHOWN = 10
"""GitHub shows so many annotations of one kind for a step, and drops the others in silence."""


class Annotation(NamedTuple):
    """One annotation: `level` is error, warning or notice."""

    level: str
    title: str
    message: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = {"file": self.file, "line": self.line, "title": self.title}
        properties = ",".join(f"{name}={_property(str(value))}" for name, value in place.items() if value is not None)
        return f"::{self.level} {properties}::{_data(self.message)}"


def github(document: HealthDocument) -> str:
    """At most ten annotations, and a last one that says how many more there are."""
    found = list(_annotations(document))
    shown = found if len(found) <= SHOWN else found[: SHOWN - 1]
    if len(found) > len(shown):
        rest = len(found) - len(shown)
        shown = [*shown, Annotation("notice", "ng-capture health", f"{rest} more: see ng-capture health -f markdown")]
    return "".join(f"{annotation}\n" for annotation in shown)


def _annotations(document: HealthDocument) -> Iterator[Annotation]:
    for check in document.failed:
        examples = f" (for example {', '.join(check.rollouts[:5])})" if check.rollouts else ""
        yield Annotation("error", check.name, f"{check.message}{examples}")
    for why in why_masked(document):
        examples_of_it = document.examples.get(f"reasons.{why.reason}", ())
        first = examples_of_it[0] if examples_of_it else None
        yield Annotation(
            level="warning",
            title=f"{why.reason} masks {why.rollouts:,}",
            message=f"{why.example}: {first.message if first and first.message else why.reason}; {why.what_to_do}",
            file=None if first is None else _path(first),
            line=None if first is None else first.line,
        )
    for notice in document.notices:
        yield Annotation("notice", notice.metric, f"{notice.means}; look at {notice.look_at}")


def _path(example: Example) -> str | None:
    """The file as a path from where the command was run."""
    if example.file is None or example.directory is None:
        return example.file
    return str(PurePath(example.directory, example.file))


def _data(text: str) -> str:
    # line breaks are made visible first: none of them is meant
    return visible(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
