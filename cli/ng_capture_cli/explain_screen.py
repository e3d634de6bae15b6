"""How an explanation reads: verdict, findings, then every break with its place, its ids, its cause and its price."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ng_capture.outputs.explain.breaks import Break, Window
from ng_capture.outputs.explain.explanation import BreakSummary, Explanation
from ng_capture_cli.cells import cut, fit
from ng_capture_cli.summary import counted, finding_line
from ng_capture_cli.terminal import BOLD_RED, DIM, GREEN, Colors, safe

if TYPE_CHECKING:
    from ng_capture.outputs.explain.template import TemplateReport

_WIDTH = 100
_POLICIES = ("strict", "terminal", "all")


def explanation_screen(explanation: Explanation, call: str | None, colors: Colors) -> str:
    """One rollout; of its breaks only those of `call`, where one is named."""
    return "".join(f"{line}\n" for line in _explanation(explanation, call, colors))


def summary_screen(summary: BreakSummary, colors: Colors) -> str:
    """A whole directory."""
    return "".join(f"{line}\n" for line in _summary(summary, colors))


def _explanation(explanation: Explanation, call: str | None, colors: Colors) -> Iterator[str]:
    masked = explanation.verdict == "masked"
    verdict = colors.paint(explanation.verdict, BOLD_RED if masked else GREEN)
    why = f": {', '.join(explanation.reasons)}" if explanation.reasons else ""
    shape = f"{counted(explanation.calls, 'call')}, {counted(explanation.chains, 'chain')}"
    yield f"{safe(explanation.rollout_id)}   {verdict}{why}   {shape}"
    if explanation.raw_only:
        yield colors.paint("  records made of the raw calls, parents presumed by the conversation", DIM)
    for finding in explanation.findings:
        named = (finding.call, finding.parent, *(finding.calls or ()))
        if finding.severity != "info" and (call is None or call in named):
            yield f"  {finding_line(explanation.rollout_id, finding, colors)}"
    breaks = [each for each in explanation.breaks if call is None or each.call == call]
    for number, each in enumerate(breaks, 1):
        yield ""
        yield from _break(each, number, len(breaks), colors)
    unlinked = [each for each in explanation.unlinked if call is None or each.call == call]
    for link in unlinked:
        fits = "its prompt begins with no other call's sequence"
        if link.fits is not None:
            fits = f"its prompt does begin with all {link.fits_len:,} tokens of call {safe(link.fits)}"
        yield ""
        yield f"  no link   call {safe(link.call)} ({link.reason}): {fits}"
    if not breaks and not unlinked:
        yield "  no prefix breaks" if call is None else f"  call {safe(call)} breaks no prefix"


def _break(each: Break, number: int, of: int, colors: Colors) -> Iterator[str]:
    named = "" if each.parent_named else " (presumed)"
    yield f"  break {number} of {of}   call {safe(each.call)} leaves {safe(each.parent)}{named}   turn {each.turn}"
    into = f"{counted(each.offset, 'id')} into the parent's {each.region}"
    yield f"    at       token {each.common_len:,} of {each.held_len:,}: {into}"
    yield f"    differs  {_runs(each)}"
    yield from _windows(each, colors)
    if each.texts_equal is not None:
        yield f"    texts    {'equal: only the ids differ' if each.texts_equal else 'differ'}"
    if each.fits is not None:
        yield f"    fits     the prompt does begin with all of call {safe(each.fits)}"
    yield f"    {each.confidence:<7}  {colors.paint(each.cause, BOLD_RED)} ({each.group}): {each.meaning}"
    yield f"    costs    {_costs(each.tokens_lost)}"
    yield f"    do       {each.remedy}"


def _runs(each: Break) -> str:
    if each.new_len == each.common_len:
        missing = each.held_len - each.common_len
        return f"the prompt ends here; {counted(missing, 'held id')} {'is' if missing == 1 else 'are'} not in it"
    if each.held_meets is None or each.new_meets is None:
        return f"{counted(each.held_run, 'held id')} to the end; the two do not meet again"
    meeting = f"alike again from token {each.held_meets:,} (new: {each.new_meets:,})"
    if not each.held_run:
        return f"{counted(each.new_run, 'id')} added; {meeting}"
    if not each.new_run:
        return f"{counted(each.held_run, 'held id')} left out; {meeting}"
    return f"{counted(each.held_run, 'held id')} became {counted(each.new_run, 'id')}; {meeting}"


def _windows(each: Break, colors: Colors) -> Iterator[str]:
    for name, window in (("held", each.held), ("new", each.new)):
        yield f"    {name:<7}  {_ids(window, each.common_len, colors)}"
    for name, window in (("held", each.held), ("new", each.new)):
        if window.text is not None:
            yield f"    {name:<7}  {cut(_quoted(window.text), _WIDTH)}"


def _ids(window: Window, place: int, colors: Colors) -> str:
    before = " ".join(map(str, window.ids[: place - window.start]))
    after = window.ids[place - window.start :]
    here = [colors.paint(f"[{after[0]}]", BOLD_RED), *map(str, after[1:])] if after else ["[end]"]
    dots = "... " if window.start else ""
    return f"{dots}{before} {' '.join(here)}".strip()


def _quoted(text: str) -> str:
    """The text on one line: line breaks and the like as they are escaped, what could act as `safe` shows it."""
    return safe(repr(text))


def _costs(lost: Mapping[str, int]) -> str:
    told = ", ".join(f"{policy} {lost[policy]:,}" for policy in _POLICIES)
    return f"{told} trained tokens by policy"


def _summary(summary: BreakSummary, colors: Colors) -> Iterator[str]:
    yield (
        f"{counted(summary.rollouts, 'rollout')}, {summary.masked:,} masked, "
        f"{counted(summary.breaks, 'broken prefix').replace('prefixs', 'prefixes')}"
    )
    if not summary.breaks:
        return
    width = max(24, *(len(each.cause) for each in summary.by_cause))
    head = "".join(f"{f'lost: {policy}':>16}" for policy in _POLICIES)
    yield f"  {'cause':<{width}}  breaks  likely  rollouts{head}   for example"
    for each in summary.by_cause:
        lost = "".join(f"{each.tokens_lost[policy]:>16,}" for policy in _POLICIES)
        example = f"{safe(each.example)} {safe(each.example_call)[:8]}"
        name = colors.paint(fit(each.cause, width), BOLD_RED)
        yield f"  {name}  {each.breaks:>6,}  {each.likely:>6,}  {each.rollouts:>8,}{lost}   {example}"
    yield "  what to do"
    for each in summary.by_cause:
        yield f"    {each.cause}: {each.remedy}"
    yield "  by turn    " + ", ".join(f"{turn}: {number:,}" for turn, number in summary.by_turn.items())
    yield "  by model   " + ", ".join(f"{safe(name) or 'unknown'}: {n:,}" for name, n in summary.by_model.items())


def template_screen(report: "TemplateReport", colors: Colors) -> str:
    """A template, a line for each feature; where it is broken, what was there and what is there now."""
    return "".join(f"{line}\n" for line in _template(report, colors))


def _template(report: "TemplateReport", colors: Colors) -> Iterator[str]:
    kept = colors.paint("keeps prefixes", GREEN) if report.keeps_prefixes else colors.paint("breaks prefixes", BOLD_RED)
    yield f"{safe(report.place)}   {kept}"
    width = max(len(feature.name) for feature in report.features)
    for feature in report.features:
        status = colors.paint(feature.status, BOLD_RED) if feature.status == "broken" else feature.status
        place = f"turn {feature.turn}, character {feature.at:,}: " if feature.at is not None else ""
        yield f"  {feature.name:<{width}}   {status:<7}   {place}{safe(feature.note or '')}".rstrip()
        if feature.held is not None and feature.new is not None:
            yield f"    held  {cut(_quoted(feature.held), _WIDTH)}"
            yield f"    new   {cut(_quoted(feature.new), _WIDTH)}"
