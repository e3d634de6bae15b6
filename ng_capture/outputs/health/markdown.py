"""Health as Markdown, for the summary page of a CI job."""

import re
from collections.abc import Iterable, Iterator

from ng_capture.outputs.health.document import HealthDocument, Part
from ng_capture.outputs.health.words import facts, percent, why_masked, worst_first
from ng_capture.verdicts.health.gates import spelled
from ng_capture.visible import visible

_PARTS = 50
# an underscore inside a word is text to GitHub
_ACTIVE = re.compile(r"([\\`*\[\]<>|~&@#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")


def markdown(document: HealthDocument) -> str:
    """The whole document as a page."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: HealthDocument) -> Iterator[str]:
    metrics = document.metrics
    yield f"## Capture health: {', '.join(map(_text, document.paths))}"
    yield ""
    failed = len(document.failed)
    yield (
        f"**{failed} of {len(document.checks)} checks failed**"
        if failed
        else f"{len(document.checks)} checks, none failed"
    )
    yield ""
    judged = (metrics.trainable or 0) + (metrics.masked or 0)
    yield from _table(
        ("", "rollouts", "share"),
        [
            *(
                (name, f"{number:,}", percent(number, judged))
                for name, number in (("trainable", metrics.trainable), ("masked", metrics.masked))
                if number is not None
            ),
            *(
                (name, f"{number:,}", "")
                for name, number in (("retired", metrics.retired), ("unread", metrics.unread))
                if number
            ),
            ("all", f"{metrics.rollouts:,}", ""),
        ],
    )
    if document.checks:
        yield "### Checks"
        yield ""
        yield from _table(
            ("", "check", "value", "for example"),
            [(check.status, check.name, check.message, ", ".join(check.rollouts[:5])) for check in document.checks],
        )
    reasons = why_masked(document)
    if reasons:
        yield "### Why masked"
        yield ""
        rows = [(why.reason, f"{why.rollouts:,}", why.example, why.what_to_do) for why in reasons]
        yield from _table(("reason", "rollouts", "for example", "what to do"), rows)
    if document.notices:
        yield "### Worth a look"
        yield ""
        yield from _table(
            ("metric", "value", "usually means", "look at"),
            [(each.metric, spelled(each.value), each.means, each.look_at) for each in document.notices],
        )
    yield "### Numbers"
    yield ""
    yield from _table(("", ""), _numbers(document))
    if document.breakdown is not None:
        yield f"### By {document.breakdown.by}"
        yield ""
        parts = worst_first(document.breakdown)
        head = (document.breakdown.by, "rollouts", "trainable", "masked", "mask_fraction", "delivered_fraction")
        yield from _table(head, map(_part, parts[:_PARTS]))
        if len(parts) > _PARTS:
            yield f"and {len(parts) - _PARTS} more with a lower mask\\_fraction"


def _part(part: Part) -> tuple[str, ...]:
    told = part.metrics
    numbers = (told.rollouts, told.trainable, told.masked, told.mask_fraction, told.delivered_fraction)
    return (part.key or "unknown", *map(spelled, numbers))


def _numbers(document: HealthDocument) -> Iterator[tuple[str, str]]:
    metrics = document.metrics
    for name in ("captured", "delivered", "trained", "context", "lost"):
        value = getattr(metrics, f"generated_tokens_{name}")
        if value is not None:
            yield f"generated tokens {name}", f"{value:,}"
    yield from facts(metrics)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(map(_text, head)) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(_text, row)) + " |"
    yield ""


def _text(text: str) -> str:
    """Text that Markdown takes as text, whatever a capture puts into it."""
    return _ACTIVE.sub(r"\\\1", visible(text).replace("\t", " "))
