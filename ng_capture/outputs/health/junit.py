"""Health as JUnit XML: one case per rollout, one per check."""

import re
import tempfile
from types import TracebackType
from typing import IO, Protocol, Self
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from ng_capture.outputs.health.document import HealthDocument
from ng_capture.outputs.verify import Unread
from ng_capture.verdicts.health.rollout import RolloutHealth
from ng_capture.visible import visible

# what XML 1.0 cannot hold, not even escaped
_NO_XML = re.compile("[\ufffe\uffff]")
_IN_MEMORY = 1 << 20


class _Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


class JUnitReport:
    """Takes rollouts as they go by. Cases are kept in a temporary file: their number stands before them."""

    def __init__(self) -> None:
        # on disk when it grows: memory must not follow the run (design.md, promise 10)
        self._cases: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (closed by exit)
        self._xml = XMLGenerator(self._cases, "utf-8", short_empty_elements=True)
        self._counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._cases.close()

    def add(self, rollout: RolloutHealth | Unread) -> None:
        """One case: a masked rollout failed, a retired one is skipped, one that could not be read is an error."""
        if isinstance(rollout, Unread):
            self._case("rollouts", rollout.rollout_id, "error", "unread", rollout.message)
        elif rollout.retired:
            self._case("rollouts", rollout.rollout_id, "skipped", "retired", "")
        elif rollout.verdict == "masked":
            errors = [finding for finding in rollout.findings or () if finding.severity == "error"]
            places = [f"{finding.file}:{finding.line}" if finding.line else finding.file or "" for finding in errors]
            told = (f"{p}: {f.reason}: {f.message}" for p, f in zip(places, errors, strict=True))
            text = "\n".join(map(_safe, told))
            self._case("rollouts", rollout.rollout_id, "failure", ", ".join(rollout.reasons or ("masked",)), text)
        else:
            self._case("rollouts", rollout.rollout_id)

    def write(self, document: HealthDocument, sink: _Sink) -> None:
        """The whole report."""
        for check in document.checks:
            outcome = {"failed": "failure", "not_judged": "skipped"}.get(check.status)
            self._case("checks", check.name, outcome, check.message, _safe(", ".join(check.rollouts)))
        counts = " ".join(f'{name}="{number}"' for name, number in self._counts.items())
        suite = f'<testsuites {counts}>\n<testsuite name="ng-capture health" {counts}>\n'
        sink.write(b'<?xml version="1.0" encoding="utf-8"?>\n' + suite.encode())
        self._cases.seek(0)
        while data := self._cases.read(_IN_MEMORY):
            sink.write(data)
        sink.write(b"</testsuite>\n</testsuites>\n")

    def _case(self, kind: str, name: str, outcome: str | None = None, message: str = "", text: str = "") -> None:
        self._counts["tests"] += 1
        self._xml.startElement("testcase", AttributesImpl({"classname": f"ng-capture.{kind}", "name": _safe(name)}))
        if outcome is not None:
            self._counts[{"failure": "failures", "error": "errors"}.get(outcome, outcome)] += 1
            self._xml.startElement(outcome, AttributesImpl({"message": _safe(message)}))
            self._xml.characters(text)
            self._xml.endElement(outcome)
        self._xml.endElement("testcase")
        self._xml.ignorableWhitespace("\n")


def _safe(text: str) -> str:
    return _NO_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", visible(text))
