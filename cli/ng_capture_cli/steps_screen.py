"""How raw calls look on a terminal: a line of totals for each rollout, or a line for each call of one."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ng_capture.outputs.steps.listing import StepsSummary
from ng_capture.outputs.steps.rollout import RolloutSteps, Step
from ng_capture.outputs.steps.totals import CallMetrics
from ng_capture_cli.cells import cell_len, cut, fit
from ng_capture_cli.show_screen import short_names
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import BOLD_RED, Colors, safe

_ID_WIDTH = 40
_STOP_WIDTH = 10
_UNKNOWN = "-"


def rollout_lines(rollouts: Iterable[RolloutSteps], ids: Iterable[str], width: int, colors: Colors) -> Iterator[str]:
    """A table, a line for each rollout of which something was captured; `ids` are all that may come."""
    room = min(_ID_WIDTH, max((cell_len(_cell(rollout_id)) for rollout_id in ids), default=0))
    room = max(room, len("rollout"))
    head = f"{'calls':>6} {'failed':>6} {'turns':>5} {'tools':>5} {'in':>10} {'cached':>10} {'out':>9} {'time':>8}"
    begun = False
    for rollout in rollouts:
        if not rollout.captured:
            continue
        if not begun:
            begun = True
            yield f"{'rollout':<{room}}  {head}"
        totals = rollout.metrics
        told = (
            f"{totals.num_calls:>6,} {totals.failed_calls:>6,} {_number(totals.num_turns):>5} "
            f"{totals.num_tool_calls:>5,} {_number(totals.tokens_in):>10} {_number(totals.cached_tokens):>10} "
            f"{_number(totals.tokens_out):>9} {_time(totals.latency_total_ms):>8}"
        )
        note = cut(_note(rollout), max(10, width - room - cell_len(told) - 4))
        yield f"{fit(_cell(rollout.rollout_id), room)}  {told}  {colors.paint(note, BOLD_RED) if note else ''}".rstrip()


def step_lines(rollout: RolloutSteps, width: int, colors: Colors) -> Iterator[str]:
    """A rollout's totals and its calls in the order in which they were written."""
    parts = [
        safe(rollout.rollout_id),
        counted(rollout.metrics.num_calls, "call"),
        *_tokens(rollout.metrics),
        *([_time(rollout.metrics.latency_total_ms)] if rollout.metrics.latency_total_ms is not None else []),
        *(safe(", ".join(sorted(names))) for names in (_models(rollout), _dialects(rollout)) if names),
    ]
    yield "   ".join(parts)
    if not rollout.steps:
        return
    names = short_names([step.model_call_id or _UNKNOWN for step in rollout.steps])
    room = max([4, *(cell_len(_cell(name)) for name in names.values())])
    yield (
        f"  {'#':>3}  {'call':<{room}} {'turn':>4} {'in':>8} {'cached':>8} {'out':>7} {'time':>8} {'first':>8}  "
        f"{'stop':<{_STOP_WIDTH}}  what"
    )
    for number, step in enumerate(rollout.steps):
        yield _step_line(step, number, fit(_cell(names[step.model_call_id or _UNKNOWN]), room), width, colors)


def summary_lines(summary: StepsSummary, *, sums: bool = True) -> Iterator[str]:
    """How many calls there are, what they used, what was wrong; a hint where there is none.

    `sums` is false where the table has told them.
    """
    if not summary.rollouts:
        yield "no rollout found"
        return
    if not summary.num_calls and not summary.damaged_lines:
        yield f"no raw call in {counted(summary.rollouts, 'rollout')}"
        yield "hint: NeMo Gym writes .capture.jsonl where observability_enabled and model_call_capture_dir are set"
        return
    if sums:
        some = f"{summary.with_calls:,} of " if summary.with_calls < summary.rollouts else ""
        told = [counted(summary.num_calls, "call"), *_tokens(summary)]
        yield f"{some}{counted(summary.rollouts, 'rollout')}: {', '.join(told)}."
    categories = (f"{safe(name)} {count:,}" for name, count in summary.error_categories.items())
    if summary.error_categories:
        yield f"{summary.failed_calls:,} failed; errors: {', '.join(categories)}"
    if summary.repeated_lines:
        yield f"{counted(summary.repeated_lines, 'repeated line')}, each call counted once"
    if summary.damaged_lines:
        yield f"{counted(summary.damaged_lines, 'line')} could not be read: the sums are too small"


def _step_line(step: Step, number: int, name: str, width: int, colors: Colors) -> str:
    stop = step.finish_reason or step.response_status or _UNKNOWN
    head = (
        f"  {number:>3}  {name} {_number(step.turn_index):>4} {_number(step.tokens_in):>8} "
        f"{_number(step.cached_tokens):>8} {_number(step.tokens_out):>7} {_time(step.latency_total_ms):>8} "
        f"{_time(step.latency_ttft_ms):>8}  {fit(_cell(stop), _STOP_WIDTH)}  "
    )
    room = max(10, width - cell_len(head))
    fault = cut(_fault(step), room)
    painted = f"{colors.paint(fault, BOLD_RED)} " if fault else ""
    return f"{head}{painted}{cut(_tools(step), max(10, room - cell_len(fault) - 1))}".rstrip()


def _fault(step: Step) -> str:
    status = step.status_code if step.status_code is not None and step.status_code >= 400 else None
    told = [step.error_category, None if status is None else str(status), step.local_response_reason]
    words = " ".join(dict.fromkeys(_cell(each) for each in told if each))
    return f"[{words}]" if words else ""


def _tools(step: Step) -> str:
    names = Counter(_cell(use.name or "?") for use in step.tool_calls)
    return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in names.items())


def _note(rollout: RolloutSteps) -> str:
    told = [f"{name} {count:,}" for name, count in rollout.metrics.error_categories.items()]
    told += [counted(rollout.damaged_lines, "damaged line")] if rollout.damaged_lines else []
    told += ["incomplete"] if any(gap.code == "model_call_capture_incomplete" for gap in rollout.gaps) else []
    return _cell(", ".join(told))


def _tokens(sums: CallMetrics | StepsSummary) -> list[str]:
    """Tokens in words; nothing where nothing was counted."""
    cached = "" if sums.cached_tokens is None else f" ({sums.cached_tokens:,} cached)"
    read = [] if sums.tokens_in is None else [f"{sums.tokens_in:,} tokens in{cached}"]
    made = [] if sums.tokens_out is None else [f"{sums.tokens_out:,} out"]
    return read + made or ([] if sums.tokens_total is None else [f"{sums.tokens_total:,} tokens in all"])


def _models(rollout: RolloutSteps) -> set[str]:
    return {step.model for step in rollout.steps if step.model}


def _dialects(rollout: RolloutSteps) -> set[str]:
    return {step.dialect for step in rollout.steps if step.dialect}


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def _time(milliseconds: float | None) -> str:
    if milliseconds is None:
        return _UNKNOWN
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 60:,.0f} min"


def _cell(text: str) -> str:
    return safe(text).replace("\t", " ")
