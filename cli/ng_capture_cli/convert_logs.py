"""`convert --to capture`: the raw calls of logs as captures and no more; `ingest` makes records of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from ng_capture.contracts.conversion import Converted, FileName
from ng_capture.contracts.interface import Profile, Written
from ng_capture.contracts.rules import Fault
from ng_capture.errors import UsageError
from ng_capture.files.listing import Selection
from ng_capture.files.names import parse_name, shown
from ng_capture.ingest.captures import LogCapture, LogCaptures
from ng_capture.ingest.sources.recognise import recognise
from ng_capture.records.defects import Defect
from ng_capture.verdicts.findings import find
from ng_capture_cli import exits
from ng_capture_cli.convert_output import Outputs
from ng_capture_cli.convert_report import Report, fault_line
from ng_capture_cli.terminal import tell, tell_error

_SUFFIX = ".capture.jsonl"


def convert_logs(
    sources: Sequence[str],
    log_format: str | None,
    output: str,
    selection: Selection,
    loss_report: Path | None,
    quiet: bool,
) -> int:
    """A capture for each rollout of the logs; gives the exit code. Raises UsageError and SurroundingsError.

    Calls that name no rollout are of the one that the output is named after.
    """
    recognition = recognise(sources, log_format)
    name = parse_name(Path(output).name)
    captures = LogCaptures(recognition, name.rollout_id if name is not None else None)
    damaged = _tell_faults(captures.defects)
    report = Report("capture", Profile.NATIVE, loss_report)
    problems = Counter[str]()
    files = [Path(file.name) for log in recognition.logs for file in log.files]
    with Outputs(output, whole=True, sources=files, loss_report=loss_report) as outputs:
        for capture in captures.rollouts():
            if selection.takes(capture.rollout_id):
                if name is not None and capture.rollout_id != name.rollout_id:
                    message = f"{output}: is named after another rollout than {capture.rollout_id}"
                    raise UsageError(message, hint="-o DIR/ names each file after its rollout")
                problems.update(capture.problems)
                converted = _converted(capture)
                report.add("log", converted, outputs.take(converted))
    if not damaged and report.exit_code != exits.DONE:
        hint = "ng-capture convert --list: what else can be made of it"
        tell_error(f"{', '.join(map(shown, sources))}: no raw call is in it", hint)
    report.write()
    if not quiet:
        report.tell(output, recognition.passed_over)
        for reason, count in problems.most_common():
            tell(f"  masks what is trained: {reason} {count:,}; ng-capture reason {reason}")
    return exits.FINDINGS if damaged and report.exit_code == exits.DONE else report.exit_code


def _converted(capture: LogCapture) -> Converted:
    name = FileName(capture.rollout_id, _SUFFIX)
    return Converted(capture.rollout_id, "", name, Written(capture.lines), (), ())


def _tell_faults(defects: Iterable[Defect]) -> bool:
    """Tell what could not be taken; true if something was."""
    wrong = [finding for finding in map(find, defects) if finding.severity == "error"]
    for finding in wrong:
        tell_error(
            fault_line(finding.file or "log", Fault(finding.reason, "error", finding.message, line=finding.line))
        )
    return bool(wrong)
