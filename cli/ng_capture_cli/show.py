"""`ng-capture show`: the rollouts of a directory, or one of them: its calls, its conversation, its tokens."""

import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from ng_capture.outputs.explain.rollout import ShownRollout
    from ng_capture.outputs.verify import VerifyTask
    from ng_capture.tokenizer import Tokenizer

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.outputs.show.sorting import SortBy
from ng_capture.verdicts.judging import Judging, Policy
from ng_capture.verdicts.reasons import REASONS
from ng_capture_cli import exits, options
from ng_capture_cli.output import Sink, open_sink
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import Colors, tell, tell_error

_WIDTH = 120

ThePath = Annotated[str | None, typer.Argument(metavar="PATH", help="A capture directory or file.", show_default=False)]
RolloutId = Annotated[
    str | None, typer.Argument(metavar="ROLLOUT", help="A rollout id; without it, a list.", show_default=False)
]
Reason = Annotated[
    list[str] | None, typer.Option("--reason", metavar="NAME", help="Only rollouts that are masked for this reason.")
]
Sort = Annotated[SortBy, typer.Option("--sort", help="The order of the list; numbers from the largest down.")]
AsText = Annotated[bool, typer.Option("--text", help="The conversation of the delivered chain, thinking folded.")]
AsTokens = Annotated[bool, typer.Option("--tokens", help="Every token, by what becomes of it.")]
OneCall = Annotated[
    str | None, typer.Option("--call", metavar="ID", help="One call in full (the beginning of its id will do).")
]
AsJson = Annotated[bool, typer.Option("--json", envvar="NG_CAPTURE_SHOW_JSON", help="One document.")]


def command(
    path: ThePath = None,
    rollout: RolloutId = None,
    as_text: AsText = False,
    as_tokens: AsTokens = False,
    call: OneCall = None,
    tokenizer: options.TheTokenizer = None,
    reason: Reason = None,
    sort: Sort = SortBy.ID,
    rollouts: options.Rollouts = None,
    policy: options.ThePolicy = Policy.TERMINAL,
    policy_model: options.PolicyModel = None,
    infer_links: options.InferLinks = False,
    as_json: AsJson = False,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write there instead.")] = "-",
    include: options.Include = None,
    exclude: options.Exclude = None,
    quiet: options.Quiet = False,
    color: options.TheColor = options.Color.AUTO,
) -> int:
    """Show the rollouts of a directory, or one of them: its calls as a flat tree, its text, its tokens, one call.

    In the tree * marks calls that are trained, o those that are context, |- an answer that was asked again.
    """
    if path is None:
        raise UsageError("no path given", hint="ng-capture show <capture directory> [ROLLOUT]")
    views = [name for name, asked in (("--text", as_text), ("--tokens", as_tokens), ("--call", call)) if asked]
    if len(views) > 1 or (views and rollout is None):
        raise UsageError(f"{' and '.join(views)}: one view of one ROLLOUT", hint="ng-capture show PATH ROLLOUT --text")
    from ng_capture_cli.looking import find_tasks, tell_foreign_ids

    colors = Colors(color, terminal=output == "-" and sys.stdout is not None and sys.stdout.isatty())
    judging = Judging(policy, policy_model, infer_links)
    found = find_tasks(path, rollout, rollouts, judging, include, exclude, output, tokenizer)
    loaded, code = options.load_tokenizer(tokenizer), exits.DONE
    with open_sink(output) as sink:
        if rollout is None:
            code = _show_list(found.tasks, reason, sort, as_json, sink, colors, quiet)
        else:
            (task,) = found.tasks
            _show_rollout(task, views, call, loaded, as_json, sink, colors, quiet)
    tell_foreign_ids(loaded)
    return max(code, exits.FINDINGS) if found.tell_rows(quiet) else code


def _show_list(
    tasks: "Iterable[VerifyTask]",
    reasons: list[str] | None,
    sort: SortBy,
    as_json: bool,
    sink: Sink,
    colors: Colors,
    quiet: bool,
) -> int:
    for name in reasons or ():
        if name not in REASONS:
            raise UsageError(f"--reason {name}: no such reason", hint="ng-capture reason")
    from ng_capture.outputs.explain.rollout import read_rollout
    from ng_capture.outputs.show.listing import RolloutList, in_order, line_of
    from ng_capture_cli.show_screen import list_lines

    lines, failures, seen = [], [], 0
    for task in tasks:
        seen += 1
        try:
            line = line_of(read_rollout(task, raw_calls=False))
        except SurroundingsError as error:
            failures.append(error.message)
            continue
        if not reasons or set(reasons) & set(line.reasons):
            lines.append(line)
    lines = in_order(lines, sort)
    if as_json:
        sink.write(msgspec.json.encode(RolloutList(rollouts=tuple(lines))) + b"\n")
    elif lines:
        _print(list_lines(lines, _width(), colors), sink)
    for message in failures:
        tell_error(message)
    if not quiet:
        masked = sum(line.verdict == "masked" for line in lines)
        of = f" of {counted(seen, 'rollout')}" if len(lines) < seen else " rollout" + ("s" if seen != 1 else "")
        tell(f"{len(lines):,}{of}, {masked:,} masked" if seen else "no rollout found")
    if failures:
        return exits.SURROUNDINGS
    return exits.DONE if seen else exits.FINDINGS


def _show_rollout(
    task: "VerifyTask",
    views: list[str],
    call: str | None,
    tokenizer: "Tokenizer | None",
    as_json: bool,
    sink: Sink,
    colors: Colors,
    quiet: bool,
) -> None:
    from ng_capture.outputs.explain.rollout import read_rollout
    from ng_capture.outputs.show.tree import tree_of
    from ng_capture_cli.looking import find_call
    from ng_capture_cli.show_screen import tree_lines

    shown = read_rollout(task)
    if call is not None:
        _show_call(shown, find_call(shown.judgement.analysis.calls, call), tokenizer, as_json, sink, colors)
    elif "--text" in views:
        _show_text(shown, tokenizer, as_json, sink, colors)
    elif "--tokens" in views:
        _show_tokens(shown, tokenizer, as_json, sink, colors)
    elif as_json:
        sink.write(msgspec.json.encode(tree_of(shown)) + b"\n")
    else:
        _print(tree_lines(tree_of(shown), _width(), colors), sink)
    analysis = shown.judgement.analysis
    if call is None and views and not shown.judgement.rows and len(analysis.chains) > 1 and not quiet:
        tell(f"masked: one of its {len(analysis.chains):,} chains is shown; --call ID shows any call")


def _show_call(
    shown: "ShownRollout", call: str, tokenizer: "Tokenizer | None", as_json: bool, sink: Sink, colors: Colors
) -> None:
    from ng_capture.outputs.show.call import view_of
    from ng_capture_cli.show_screen import call_lines

    view = view_of(shown, call)
    if as_json:
        sink.write(msgspec.json.encode(view) + b"\n")
    else:
        _print(call_lines(view, tokenizer, _width(), colors), sink)


def _show_text(shown: "ShownRollout", tokenizer: "Tokenizer | None", as_json: bool, sink: Sink, colors: Colors) -> None:
    from ng_capture.outputs.show.conversation import conversation
    from ng_capture_cli.show_screen import text_lines

    messages = conversation(shown, tokenizer)
    if as_json:
        for message in messages:
            sink.write(msgspec.json.encode(message) + b"\n")
    else:
        _print(text_lines(messages, colors), sink)


def _show_tokens(
    shown: "ShownRollout", tokenizer: "Tokenizer | None", as_json: bool, sink: Sink, colors: Colors
) -> None:
    from ng_capture.outputs.show.spans import token_spans
    from ng_capture_cli.show_screen import token_lines

    spans = token_spans(shown.judgement)
    if as_json:
        for span in spans:
            told = {**msgspec.structs.asdict(span), "ids": list(span.ids)}
            sink.write(msgspec.json.encode(told) + b"\n")
    else:
        _print(token_lines(spans, tokenizer, _width(), colors), sink)


def _print(lines: Iterator[str], sink: Sink) -> None:
    for line in lines:
        sink.write(f"{line}\n".encode())


def _width() -> int:
    """A terminal's own width; elsewhere a line that anyone can read."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns
