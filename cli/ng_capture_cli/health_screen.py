"""The screen of `ng-capture health`: what reaches the trainer, why the rest does not, whether the gates hold."""

import shutil
import textwrap
from collections.abc import Iterator

from ng_capture.outputs.health.document import HealthDocument, Part
from ng_capture.outputs.health.words import facts, percent, why_masked, worst_first
from ng_capture.verdicts.health.gates import CheckResult, spelled
from ng_capture.verdicts.health.metrics import HealthMetrics
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import BOLD_RED, DIM, Colors, safe

_BAR = 37
_WIDTH = 100
_NOTICES = 4
_REASONS = 10
_PARTS = 20
_IDS = 12


def screen(document: HealthDocument, colors: Colors) -> str:
    """All of it, a line each; ids and names from captures are made safe."""
    return "".join(f"{line}\n" for line in _lines(document, colors))


def _lines(document: HealthDocument, colors: Colors) -> Iterator[str]:
    metrics = document.metrics
    more = f" and {len(document.paths) - 1} more" if len(document.paths) > 1 else ""
    calls = metrics.calls if metrics.calls is not None else metrics.n_calls
    head = f"{safe(document.paths[0])}{more}   {counted(metrics.rollouts, 'rollout')}"
    yield head if calls is None else f"{head}   {counted(calls, 'call')}"
    yield from _verdicts(metrics)
    yield from _tokens(metrics)
    yield from _masked(document)
    if document.notices:
        yield "  worth a look"
        for notice in document.notices[:_NOTICES]:
            value = "" if notice.value is None else f" {spelled(notice.value)}"
            yield from _wrapped(f"{notice.metric}{value}: {notice.means}", "    ", "      ")
            look = _wrapped(f"look at {notice.look_at}", "      ", "      ")
            yield from (colors.paint(line, DIM) for line in look)
        if len(document.notices) > _NOTICES:
            yield f"    and {len(document.notices) - _NOTICES} more: -f markdown"
    known = list(facts(metrics))
    width = max((len(fact.name) for fact in known), default=0)
    for fact in known:
        yield from _wrapped(safe(fact.value), f"  {fact.name:<{width}}   ", " " * (width + 5))
    yield from _breakdown(document)
    yield from _gates(document, colors)


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    # a terminal's own width; elsewhere a line that anyone can read
    width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns - 1)
    return textwrap.wrap(text, max(40, width), initial_indent=first, subsequent_indent=rest, break_long_words=False)


def _verdicts(metrics: HealthMetrics) -> Iterator[str]:
    judged = (metrics.trainable or 0) + (metrics.masked or 0)
    width = len(f"{metrics.rollouts:,}")
    open_ended = {"running": metrics.running, "abandoned": metrics.abandoned}
    beside = ", ".join(f"{number:,} {name}" for name, number in open_ended.items() if number)
    for name, number, note in (("trainable", metrics.trainable, ""), ("masked", metrics.masked, beside)):
        if number is not None:
            bar = "#" * round(_BAR * number / judged) if judged else ""
            yield f"  {name:<9}   {number:>{width},}   {percent(number, judged):>7}  {bar}   {note}".rstrip()
    for name, number in (("retired", metrics.retired), ("unread", metrics.unread)):
        if number:
            yield f"  {name:<9}   {number:>{width},}"


def _tokens(metrics: HealthMetrics) -> Iterator[str]:
    told = {name: getattr(metrics, f"generated_tokens_{name}") for name in ("captured", "delivered")}
    told = {name: value for name, value in told.items() if value is not None}
    if not told:
        return
    fraction = (
        f"   delivered_fraction {metrics.delivered_fraction:.3f}" if metrics.delivered_fraction is not None else ""
    )
    yield "  generated tokens   " + "   ".join(f"{name} {value:,}" for name, value in told.items()) + fraction
    if metrics.generated_tokens_trained is not None:
        lost = metrics.lost_by_reason or {}
        told_why = ", ".join(f"{safe(reason)} {number:,}" for reason, number in list(lost.items())[:3])
        why = f" ({told_why})" if lost else ""
        words = (
            f"trained {metrics.generated_tokens_trained:,}"
            f"   context {metrics.generated_tokens_context:,}   lost {metrics.generated_tokens_lost:,}{why}"
        )
        yield from _wrapped(words, " " * 21, " " * 23)


def _masked(document: HealthDocument) -> Iterator[str]:
    reasons = why_masked(document)
    if not reasons:
        return
    width = max(24, *(len(safe(why.reason)) for why in reasons))
    yield f"  {'why masked':<{width}}  rollouts   for example"
    for why in reasons[:_REASONS]:
        yield f"    {safe(why.reason):<{width}}{why.rollouts:>8,}   {safe(why.example)}".rstrip()
    if len(reasons) > _REASONS:
        yield f"    and {len(reasons) - _REASONS} more reasons"


def _breakdown(document: HealthDocument) -> Iterator[str]:
    if document.breakdown is None:
        return
    parts = worst_first(document.breakdown)
    names = [safe(part.key) if part.key is not None else "unknown" for part in parts[:_PARTS]]
    width = max([len(f"by {document.breakdown.by}"), *(len(name) + 2 for name in names)])
    yield f"  {f'by {document.breakdown.by}':<{width}}   rollouts  trainable  masked  mask_fraction  delivered_fraction"
    for name, part in zip(names, parts, strict=False):
        yield f"    {name:<{width - 2}}   {_part(part)}"
    if len(parts) > _PARTS:
        yield f"    and {len(parts) - _PARTS} more with a lower mask_fraction: -f json"


def _part(part: Part) -> str:
    told = part.metrics
    return (
        f"{told.rollouts:>8,}  {spelled(told.trainable):>9}  {spelled(told.masked):>6}"
        f"  {spelled(told.mask_fraction):>13}  {spelled(told.delivered_fraction):>18}"
    )


def _gates(document: HealthDocument, colors: Colors) -> Iterator[str]:
    shown = [check for check in document.checks if check.bound is not None or check.status == "failed"]
    if not shown:
        return
    width = max(len(safe(check.name)) for check in shown)
    yield "  gates"
    for check in shown:
        yield _gate(check, width, colors)


def _gate(check: CheckResult, width: int, colors: Colors) -> str:
    word = {"failed": "FAIL", "passed": "ok", "not_judged": "-"}[check.status]
    ids = [safe(rollout_id) for rollout_id in check.rollouts[:_IDS]]
    more = f" and {len(check.rollouts) - _IDS} more" if len(check.rollouts) > _IDS else ""
    examples = f"   {', '.join(ids)}{more}" if ids else ""
    painted = colors.paint(f"{word:<4}", BOLD_RED) if check.status == "failed" else f"{word:<4}"
    return f"    {painted}  {safe(check.name):<{width}}   {check.message}{examples}"
