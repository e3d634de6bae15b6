"""What a rebuild was made of: digests of its inputs and of its output (design.md, Command line). No clock in it."""

import msgspec
from msgspec import UNSET, UnsetType

from ng_capture import __version__
from ng_capture.outputs.export.choices import Export
from ng_capture.outputs.parts import Part
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.records.snapshot import InputFile
from ng_capture.store.seal import Sealed
from ng_capture.verdicts.accounting import Accounting
from ng_capture.verdicts.findings import Finding
from ng_capture.verdicts.health.measures import Measures
from ng_capture.verdicts.health.rollout import measures_of
from ng_capture.verdicts.judge import Judgement, Verdict
from ng_capture.verdicts.metrics import Metrics

RECEIPT_SCHEMA = "ng-capture.receipt/1"


def receipt_place(output: str) -> str:
    """Where the receipt of an output stands, if no other place was named."""
    return f"{output}.receipt.json"


class ReceiptOptions(msgspec.Struct, frozen=True):
    """The options that decide what is in the output.

    `attach_calls` is told only where calls are attached, `export` only where something about rows was chosen,
    `part` only where the output is one of several files.
    """

    to: str
    policy: str
    policy_model: str | None
    infer_links: bool
    masked: str
    rollouts: InputFile | None
    attach_calls: bool | UnsetType = UNSET
    export: Export | UnsetType = UNSET
    part: Part | UnsetType = UNSET


class ReceiptOutput(msgspec.Struct, frozen=True):
    """The output file as it was written."""

    name: str
    size: int
    rows: int
    sha256: str


class ReceiptRollout(msgspec.Struct, frozen=True, kw_only=True):
    """One rollout of a receipt.

    `rows` are its places in the output. `covered` only where those rows are trainable: gc deletes nothing else.
    `snapshot_id` and `version` are set where the rollout was sealed. `metrics`, `accounting` and `measures` are
    those of the report: the health of the output is that of its inputs.
    """

    rollout_id: str
    directory: str | None
    files: tuple[InputFile, ...]
    verdict: Verdict
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]
    rows: tuple[int, ...]
    covered: bool
    snapshot_id: str | None
    version: int | None
    metrics: Metrics
    accounting: Accounting
    measures: Measures


def receipt_rollout(
    judgement: Judgement, row: RolloutRow | None, directory: str | None, sealed: Sealed | None
) -> ReceiptRollout:
    """The entry of a judged rollout whose rows are not written yet."""
    return ReceiptRollout(
        rollout_id=judgement.rollout_id,
        directory=directory,
        files=judgement.snapshot.files,
        verdict=judgement.verdict,
        reasons=judgement.reasons,
        findings=tuple(finding for finding in judgement.findings if finding.severity != "info"),
        rows=(),
        covered=judgement.verdict == "trainable",
        snapshot_id=sealed.snapshot_id if sealed is not None else None,
        version=sealed.version if sealed is not None else None,
        metrics=judgement.metrics,
        accounting=judgement.accounting,
        measures=measures_of(judgement, row),
    )


def receipt_head(options: ReceiptOptions) -> bytes:
    """The beginning of the document, up to the list of rollouts."""
    head = msgspec.json.encode({"schema": RECEIPT_SCHEMA, "tool_version": __version__, "options": options})
    return head[:-1] + b',"rollouts":['


def receipt_tail(output: ReceiptOutput) -> bytes:
    """Its end: the output can be described only when all of it is there."""
    return b'\n],"output":%b}\n' % msgspec.json.encode(output)
