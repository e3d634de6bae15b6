"""`ng-capture explain`: why this verdict, where a prefix breaks, the likely cause, what it costs."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from ng_capture.outputs.verify import VerifyTask
    from ng_capture.tokenizer import Tokenizer

from ng_capture.errors import UsageError
from ng_capture.files.listing import Listing
from ng_capture.verdicts.judging import Judging, Policy
from ng_capture_cli import exits, options
from ng_capture_cli.output import Sink, open_sink
from ng_capture_cli.terminal import Colors, tell, tell_error

Path_ = Annotated[str | None, typer.Argument(metavar="PATH", help="A capture directory or file.", show_default=False)]
RolloutId = Annotated[
    str | None, typer.Argument(metavar="ROLLOUT", help="A rollout id; without it, a summary.", show_default=False)
]
CallId = Annotated[
    str | None,
    typer.Argument(
        metavar="CALL", help="Only the break of this call (a prefix of its id will do).", show_default=False
    ),
]
Summary = Annotated[bool, typer.Option("--summary", help="Breaks by cause, turn and model over the whole directory.")]
Template = Annotated[
    str | None,
    typer.Option("--template", metavar="DIR_OR_NAME", help="No capture: does this chat template keep prefixes?"),
]
AsJson = Annotated[bool, typer.Option("--json", envvar="NG_CAPTURE_EXPLAIN_JSON", help="One document.")]


def command(
    path: Path_ = None,
    rollout: RolloutId = None,
    call: CallId = None,
    tokenizer: options.TheTokenizer = None,
    summary: Summary = False,
    template: Template = None,
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
    """Explain a rollout: verdict, findings, and for each broken prefix its place, ids, likely cause and price.

    Without ROLLOUT: the breaks of the whole directory by cause. With a tokenizer texts are compared, too.
    """
    from ng_capture_cli.looking import find_tasks, tell_foreign_ids

    colors = Colors(color, terminal=output == "-" and sys.stdout is not None and sys.stdout.isatty())
    if template is not None:
        if path is not None:
            raise UsageError("--template looks at a chat template and takes no PATH")
        return _explain_template(template, as_json, output, colors)
    if path is None:
        raise UsageError("no path given", hint="ng-capture explain <capture directory> [ROLLOUT [CALL]]")
    if summary and rollout is not None:
        raise UsageError("--summary is about the whole directory: give no ROLLOUT")
    loaded = options.load_tokenizer(tokenizer)
    judging = Judging(policy, policy_model, infer_links)
    found = find_tasks(path, rollout, rollouts, judging, include, exclude, output, tokenizer)
    with open_sink(output) as sink:
        if rollout is not None:
            code = _explain_rollout(found.tasks, loaded, call, as_json, sink, colors)
        else:
            code = _explain_all(path, found.tasks, loaded, as_json, sink, colors, quiet)
    tell_foreign_ids(loaded)
    return max(code, exits.FINDINGS) if found.tell_rows(quiet) else code


def _explain_rollout(
    tasks: "Iterable[VerifyTask]",
    tokenizer: "Tokenizer | None",
    call: str | None,
    as_json: bool,
    sink: Sink,
    colors: Colors,
) -> int:
    from ng_capture.outputs.explain.explanation import explain
    from ng_capture.outputs.explain.rollout import read_rollout
    from ng_capture_cli.explain_screen import explanation_screen
    from ng_capture_cli.looking import find_call

    (task,) = tasks
    shown = read_rollout(task)
    chosen = None if call is None else find_call(shown.judgement.analysis.calls, call)
    explanation = explain(shown, tokenizer)
    if as_json:
        breaks = tuple(each for each in explanation.breaks if chosen is None or each.call == chosen)
        unlinked = tuple(each for each in explanation.unlinked if chosen is None or each.call == chosen)
        sink.write(msgspec.json.encode(msgspec.structs.replace(explanation, breaks=breaks, unlinked=unlinked)) + b"\n")
    else:
        sink.write(explanation_screen(explanation, chosen, colors).encode())
    return exits.DONE


def _explain_all(
    path: str,
    tasks: "Iterable[VerifyTask]",
    tokenizer: "Tokenizer | None",
    as_json: bool,
    sink: Sink,
    colors: Colors,
    quiet: bool,
) -> int:
    from ng_capture.outputs.explain.explanation import EXPLANATION_SCHEMA, Summariser, explain_task
    from ng_capture.outputs.verify import Unread
    from ng_capture_cli.explain_screen import summary_screen

    summariser, unread, first = Summariser(), [], True
    if as_json:
        sink.write(b'{"schema":%b,"breaks":[' % msgspec.json.encode(EXPLANATION_SCHEMA))
    for task in tasks:
        explanation = explain_task(task, tokenizer)
        if isinstance(explanation, Unread):
            unread.append(explanation.message)
            continue
        summariser.add(explanation)
        for each in explanation.breaks if as_json else ():
            sink.write((b"\n" if first else b",\n") + msgspec.json.encode(each))
            first = False
    summary = summariser.summary()
    if as_json:
        sink.write(b'\n],"summary":%b}\n' % msgspec.json.encode(summary))
    else:
        sink.write(summary_screen(summary, colors).encode())
    for message in unread:
        tell_error(message)
    if not summary.rollouts:
        tell("no rollout found")
    elif summary.by_cause and not quiet:
        tell(f"hint: ng-capture explain {path} {summary.by_cause[0].example}")
    if unread:
        return exits.SURROUNDINGS
    return exits.DONE if summary.rollouts else exits.FINDINGS


def _explain_template(place: str, as_json: bool, output: str, colors: Colors) -> int:
    from ng_capture.outputs.explain.template import check_template
    from ng_capture_cli.explain_screen import template_screen
    from ng_capture_cli.looking import model_files

    options.check_output(Listing(), output, model_files("the chat template", place))
    report = check_template(place)
    with open_sink(output) as sink:
        sink.write(msgspec.json.encode(report) + b"\n" if as_json else template_screen(report, colors).encode())
    return exits.DONE if report.keeps_prefixes else exits.FINDINGS
