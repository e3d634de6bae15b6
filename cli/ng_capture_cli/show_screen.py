"""How rollouts look on a terminal: a list, a flat tree of calls, a conversation, coloured tokens, one call."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ng_capture.ingest.messages import ASSISTANT, Message
from ng_capture.outputs.show.call import CallView
from ng_capture.outputs.show.listing import RolloutLine
from ng_capture.outputs.show.spans import SpanKind, TokenSpan
from ng_capture.outputs.show.tree import CallLine, Mark, RolloutTree
from ng_capture.tokenizer import Tokenizer
from ng_capture.verdicts.judge import moment
from ng_capture_cli.cells import cell_len, cut, fit
from ng_capture_cli.summary import counted, finding_line
from ng_capture_cli.terminal import BOLD_RED, DIM, GREEN, YELLOW, Colors, safe

_MARKS: Mapping[Mark, str] = {"trained": "*", "context": "o", "retry": "|-", "left_out": ""}
_SPAN_STYLES: Mapping[SpanKind, str] = {"prompt": "", "interstitial": DIM, "trained": GREEN, "context": YELLOW}
_ID_WIDTH = 40
_STOP_WIDTH = 10


def list_lines(lines: Sequence[RolloutLine], width: int, colors: Colors) -> Iterator[str]:
    """A table, a line per rollout."""
    ids = min(_ID_WIDTH, max([7, *(cell_len(_cell(line.rollout_id)) for line in lines)]))
    rewards = any(line.reward is not None for line in lines)
    reward = f"{'reward':>8}" if rewards else ""
    head = f"{'calls':>6} {'chains':>6} {'tokens':>9} {'trained':>9}{reward}  reasons"
    yield f"{'rollout':<{ids}}  {'verdict':<9}  {head}"
    for line in lines:
        number = "-" if line.reward is None else f"{line.reward:g}"
        raw = ["(raw calls only)"] if line.raw_only else []
        told = (
            f"{line.calls:>6,} {line.chains:>6,} {line.tokens:>9,} {line.trained:>9,}"
            f"{f'{number:>8}' if rewards else ''}  {', '.join((*line.reasons, *raw))}"
        )
        verdict = colors.paint(f"{line.verdict:<9}", BOLD_RED if line.verdict == "masked" else GREEN)
        yield f"{fit(_cell(line.rollout_id), ids)}  {verdict}  {cut(told, max(40, width - ids - 13))}"


def tree_lines(tree: RolloutTree, width: int, colors: Colors) -> Iterator[str]:
    """A rollout's calls, chain by chain."""
    masked = tree.verdict == "masked"
    why = f": {', '.join(tree.reasons)}" if tree.reasons else ""
    parts = [
        safe(tree.rollout_id),
        colors.paint(f"{tree.verdict}{why}", BOLD_RED if masked else GREEN),
        f"{counted(tree.calls, 'call')}, {counted(tree.chains, 'chain')}",
        *([] if tree.reward is None else [f"reward {tree.reward:g}"]),
        *([safe(", ".join(tree.models))] if tree.models else []),
    ]
    yield "   ".join(parts)
    if tree.raw_only:
        yield colors.paint("records made of the raw calls, parents presumed by the conversation", DIM)
    names = short_names([line.call for line in tree.lines])
    ids = max([4, *(cell_len(_cell(name)) for name in names.values())])
    yield f"     {'#':>3}  {'call':<{ids}}  {'prompt':>8} {'new':>8} {'gen':>7}  {'stop':<{_STOP_WIDTH}}  what"
    chain = None
    for line in tree.lines:
        if line.chain != chain:
            chain = line.chain
            yield colors.paint(chain, DIM)
        yield _call_line(line, names[line.call], ids, width, colors)


def _call_line(line: CallLine, name: str, ids: int, width: int, colors: Colors) -> str:
    prompt = "?" if line.prompt is None else f"{line.prompt:,}"
    new = "broken" if line.new is None else f"+{line.new:,}"
    head = (
        f"  {_MARKS[line.mark]:<2} {line.number:>3}  {fit(_cell(name), ids)}  {prompt:>8} {new:>8} {line.generated:>7,}"
        f"  {fit(_cell(line.stop or '-'), _STOP_WIDTH)}  "
    )
    note = f"[{line.note}] " if line.note else ""
    what = cut(_cell(line.what or ""), max(10, width - cell_len(head) - len(note)))
    painted = colors.paint(note, BOLD_RED if line.new is None else DIM) if note else ""
    return f"{head}{painted}{what}".rstrip()


def text_lines(messages: Iterable[Message], colors: Colors, *, folded: bool = True) -> Iterator[str]:
    """A conversation; thinking is folded to its length if asked, calls and results of tools stand by themselves."""
    for message in messages:
        style = GREEN if message.role == ASSISTANT else DIM if message.role == "system" else ""
        yield colors.paint(safe(message.role), style or YELLOW)
        if message.reasoning and folded:
            yield colors.paint(f"  [thinking, {len(message.reasoning):,} characters]", DIM)
        elif message.reasoning:
            yield from (colors.paint(f"  ~ {safe(line)}", DIM) for line in message.reasoning.strip().splitlines())
        yield from (f"  {safe(line)}" for line in message.text.splitlines())
        for call in message.tool_calls:
            yield f"  -> {safe(call.name)} {safe(call.arguments)}"


def token_lines(spans: Iterable[TokenSpan], tokenizer: Tokenizer | None, width: int, colors: Colors) -> Iterator[str]:
    """Every token, coloured by what becomes of it: as ids, or as text where a tokenizer is known."""
    row = None
    for span in spans:
        if span.row != row:
            row = span.row
            yield f"row {row}"
        if not len(span.ids):
            continue
        end = span.start + len(span.ids)
        yield f"  {span.kind} {span.start:,} to {end:,}   call {safe(span.call)}"
        pieces = [str(each) for each in span.ids] if tokenizer is None else _pieces(span, tokenizer)
        style = _SPAN_STYLES[span.kind]
        for line in _filled(pieces, width - 4, " " if tokenizer is None else "|"):
            yield f"    {colors.paint(line, style) if style else line}"


def call_lines(view: CallView, tokenizer: Tokenizer | None, width: int, colors: Colors) -> Iterator[str]:
    """One call in full."""
    yield f"{safe(view.rollout_id)}   call {safe(view.call)}   {safe(view.file)}:{view.line}"
    for name, value in (
        ("model", view.model),
        ("response", view.response_id),
        ("made at", moment(view.created_at)),
        ("parent", _parent(view)),
        ("weights", view.weight_version),
        ("stop", view.stop),
    ):
        if value not in (None, ""):
            yield f"  {name:<8}  {safe(str(value))}"
    for finding in view.findings:
        yield f"  {finding_line(view.rollout_id, finding, colors)}"
    for name, ids in (("prompt", view.prompt_token_ids), ("generation", view.generation_token_ids)):
        if ids is None:
            yield f"{name}: cannot be put together"
            continue
        yield f"{name}: {counted(len(ids), 'token')}"
        pieces = list(map(str, ids)) if tokenizer is None else [_piece(each, tokenizer) for each in ids]
        yield from (f"    {line}" for line in _filled(pieces, width - 4, " " if tokenizer is None else "|"))
    if view.generation_log_probs:
        yield "log probabilities"
        told = [f"{value:.6g}" for value in view.generation_log_probs]
        yield from (f"    {line}" for line in _filled(told, width - 4, " "))
    if view.asked is not None:
        yield "asked"
        yield from (f"  {line}" for line in text_lines(view.asked, colors, folded=False))
    if view.answer is not None:
        yield "answered"
        yield from (f"  {line}" for line in text_lines([view.answer], colors, folded=False))


def _parent(view: CallView) -> str | None:
    if view.parent is not None:
        return view.parent
    return view.parent_resolution if view.parent_named is None else f"{view.parent_named} (the link does not hold)"


def _piece(token_id: int, tokenizer: Tokenizer) -> str:
    return safe(tokenizer.text([token_id]).replace("\n", "\u21b5"))


def _pieces(span: TokenSpan, tokenizer: Tokenizer) -> list[str]:
    return [_piece(each, tokenizer) for each in span.ids]


def _filled(pieces: Iterable[str], width: int, between: str) -> Iterator[str]:
    line: list[str] = []
    length = 0
    for piece in pieces:
        cells = cell_len(piece) + len(between)
        if line and length + cells > width:
            yield between.join(line)
            line, length = [], 0
        line.append(piece)
        length += cells
    if line:
        yield between.join(line)


def _cell(text: str) -> str:
    """The text as it stands in a column: what moves the cursor has no place there."""
    return safe(text).replace("\t", " ")


def short_names(calls: Sequence[str]) -> dict[str, str]:
    """The beginnings of call ids, as short as tells them apart, of six characters at least."""
    length = 6
    while len({call[:length] for call in calls}) < len(set(calls)):
        length += 1
    return {call: call[:length] for call in calls}
