"""The folder `gym/` of the corpus: rollouts with the reference's answers and with ours, and tiny build cases."""

import hashlib
import json
import struct
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ng_capture.files.listing import Listing, list_rollouts
from ng_capture.outputs.chunks import joined
from ng_capture.outputs.projection import NoProjection, project
from ng_capture.outputs.training_rows import training_rows
from ng_capture.records.lifecycle import StoreState
from ng_capture.records.placing import Placer
from ng_capture.records.rollout_row import NO_EVIDENCE, Evidence, decode_row
from ng_capture.records.snapshot import Snapshot
from ng_capture.records.token_entry import decode_entry
from ng_capture.store.snapshot import read_snapshot
from ng_capture.verdicts.judge import Judgement
from ng_capture.verdicts.metrics import empty_generation_calls, unresolved_parent_calls
from tests.support.corpus import corpus_file, json_lines, readable_lines
from tests.support.forge import canonical
from tests.support.reference import Answer, Records, corrected

ALONE = "capture alone"
WITH_ROW = "row"


class Gym:
    """The rollouts of the folder by id; what is not there is empty."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ours = _by(json_lines(folder / "expected.ours.jsonl"), "rollout_id")
        self.reference = {
            WITH_ROW: _by(json_lines(folder / "expected.jsonl"), "rollout_id"),
            ALONE: _by(json_lines(folder / "expected.unattributed.jsonl"), "rollout_id"),
        }
        self.cases = _by(json_lines(folder / "cases.jsonl"), "id")
        self.our_cases = _by(json_lines(folder / "cases.ours.jsonl"), "id")
        self._snapshots: dict[str, Snapshot] = {}

    @cached_property
    def listing(self) -> Listing:
        return list_rollouts([str(corpus_file(self.folder / "capture"))])

    @cached_property
    def rows(self) -> dict[str, bytes]:
        """The bytes of every finished row by its rollout id."""
        lines = corpus_file(self.folder / "rollouts.jsonl").read_bytes().splitlines()
        return {str(decode_row(line).rollout_id): line for line in lines if line.strip()}

    @property
    def deviations(self) -> set[str]:
        """The names of all deviations that the folder expects."""
        told = [*self.ours.values(), *self.our_cases.values()]
        told += [ours["unattributed"] for ours in self.ours.values() if ours["unattributed"] is not None]
        return {each["deviation"] for each in told if each["deviation"] is not None}

    def wanted(self, rollout_id: str, source: str) -> dict[str, Any] | None:
        """What `expected.ours.jsonl` says, None where a rollout has no capture to judge alone."""
        ours = self.ours[rollout_id]
        return ours if source == WITH_ROW else ours["unattributed"]

    def wanted_answer(self, rollout_id: str, source: str) -> Answer:
        """The reference's answer with what the named deviations change in it."""
        return corrected(answer_for_rollout(self.reference[source][rollout_id]), self.records(rollout_id))

    def wanted_metrics(self, rollout_id: str, source: str) -> dict[str, Any] | None:
        """The metrics that follow; None where nothing can be compared.

        That is: the reference reports none, since the row has tokens of its own; or it refused to read the rollout, of
        which we count the good lines; or a call id has two contents, and which of them stands in the chains is not
        fixed.
        """
        said = self.reference[source][rollout_id]
        if not said["metrics"]:
            return None
        if said.get("chains") is None:
            return None if self.snapshot(rollout_id).entries else dict(said["metrics"])
        if self.records(rollout_id).open:
            return None
        return metrics_of(self.wanted_answer(rollout_id, source), said)

    def snapshot(self, rollout_id: str) -> Snapshot:
        if rollout_id not in self._snapshots:
            known = rollout_id in self.listing
            self._snapshots[rollout_id] = (
                read_snapshot(self.listing.get(rollout_id)) if known else Snapshot(rollout_id=rollout_id)
            )
        return self._snapshots[rollout_id]

    def evidence(self, rollout_id: str, source: str) -> Evidence:
        row = self.rows.get(rollout_id) if source == WITH_ROW else None
        return NO_EVIDENCE if row is None else decode_row(row).evidence

    def records(self, rollout_id: str) -> Records:
        return Records(readable_lines(self.folder / "capture" / f"{rollout_id}.tokens.jsonl"))


def _by(values: list[dict[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    return {value[key]: value for value in values}


def snapshot_of(rollout_id: str, entries: list[dict[str, Any]], *, incomplete: bool = False) -> Snapshot:
    """A snapshot of records that never were in a file; their index covers all of them, as after a freeze."""
    placer = Placer()
    for number, entry in enumerate(entries, 1):
        placer.add(decode_entry(canonical(entry), file=f"{rollout_id}.tokens.jsonl", line=number, byte=number))
    size = len(entries) + 1
    state = StoreState(incomplete=incomplete, entry_digests={}, indexed_size=size)
    return Snapshot(rollout_id=rollout_id, entries=placer.finish().entries, state=state, tokens_size=size)


def case_evidence(case: Mapping[str, Any]) -> Evidence:
    """What a build case says about its scored call."""
    return Evidence(case["explicit_terminal_call_id"], case["declared_response_id"], case["verified_response"] or None)


def rows_of(judgement: Judgement) -> list[dict[str, Any]]:
    """The training rows as they are written."""
    return [json.loads(joined(row.as_json())) for row in training_rows(judgement, None)]


def rows_sha256(rows: list[dict[str, Any]]) -> str:
    """The digest of `gym/README.md`, Fields of expected.ours.jsonl."""
    told = [[r["calls"], r["tokens"], r["loss_mask"], [_float32(value) for value in r["logprobs"]]] for r in rows]
    text = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _float32(value: float) -> float:
    (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    return float(rounded) or 0.0


def canonical_sha256(value: object) -> str:
    """The digest of canonical JSON (`gym/README.md`)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def rebuilt(judgement: Judgement, model: str = "") -> dict[str, Any] | None:
    """The rebuilt response, None where there is none."""
    built = project(judgement)
    if isinstance(built, NoProjection):
        return None
    response: dict[str, Any] = json.loads(joined(built[0].response(judgement.rollout_id, model)))
    return response


def answer_of(judgement: Judgement) -> Answer:
    """What the library says, in the form of the reference's answers."""
    metrics, analysis = judgement.metrics, judgement.analysis
    told = metrics.terminal_attribution
    # with a scored call the reference lists none of them, and we keep those off its path (capture-files.md 4, step 7)
    unsettled = analysis.settled.unsettled if not analysis.path else ()
    return Answer(
        method=told.method if told is not None else "none",
        terminal=told.call_id if told is not None else None,
        reason=told.reason if told is not None else "no_response_object",
        status=told.chain if told is not None else "error",
        chains=tuple((chain.chain_id, chain.calls) for chain in analysis.chains),
        roots=metrics.roots or 0,
        quarantined=tuple(sorted(analysis.settled.quarantined)),
        retries=tuple(sorted(call for group in unsettled for call in group)),
        unresolved=tuple(sorted(unresolved_parent_calls(analysis))),
        failures=metrics.parent_link_failures or {},
        empty=tuple(sorted(empty_generation_calls(analysis))),
        captured=metrics.generated_tokens_captured or 0,
        delivered=metrics.generated_tokens_delivered or 0,
    )


def answer_for_rollout(reference: Mapping[str, Any]) -> Answer:
    """A line of `expected*.jsonl` that has chains."""
    metrics = reference["metrics"]
    told = metrics.get("terminal_attribution") or {}
    return Answer(
        method=told.get("method", "none"),
        terminal=told.get("call_id"),
        reason=told.get("reason", "no_response_object"),
        status=told.get("chain", "error"),
        chains=tuple((chain["chain_id"], tuple(chain["calls"])) for chain in reference["chains"]),
        roots=metrics.get("roots", 0),
        quarantined=tuple(sorted(reference["quarantined"])),
        retries=tuple(sorted(reference["unresolved_retries"])),
        unresolved=tuple(sorted(reference["unresolved_parent_calls"])),
        failures=metrics.get("parent_link_failures", {}),
        empty=tuple(sorted(reference["empty_generation_calls"])),
        captured=metrics.get("generated_tokens_captured", 0),
        delivered=metrics.get("generated_tokens_delivered", 0),
    )


def answer_for_case(case: Mapping[str, Any]) -> Answer:
    """The `expect` of a build case that has a build."""
    expect = case["expect"]
    chains = tuple((name, tuple(calls)) for name, calls in expect["chains"])
    return Answer(
        method=expect["method"],
        terminal=expect["terminal"],
        reason=expect["reason"],
        # the builder's status; without a chain the metrics say error instead of nothing (capture-files.md 6.1)
        status=expect["chain_status"] or ("" if chains else "error"),
        chains=chains,
        roots=expect["roots"],
        quarantined=tuple(sorted(expect["quarantined"])),
        retries=tuple(sorted(expect["retries"])),
        unresolved=tuple(sorted(expect["unresolved"])),
        failures=expect["failures"],
        empty=tuple(sorted(expect["empty"])),
        captured=expect["captured"],
        delivered=expect["delivered"],
    )


def metrics_of(answer: Answer, reference: Mapping[str, Any]) -> dict[str, Any]:
    """The reference's metrics with what the corrected answer says of links and chains."""
    metrics = dict(reference["metrics"])
    if "chains" not in metrics:
        return metrics
    return metrics | {
        "terminal_attribution": metrics["terminal_attribution"] | {"chain": answer.status},
        "chains": len(answer.chains),
        "roots": answer.roots,
        "delivered_fraction": answer.fraction,
        "generated_tokens_delivered": answer.delivered,
        "parent_link_failures": dict(answer.failures),
        "unresolved_parent_calls": len(answer.unresolved),
    }


def told_metrics(judgement: Judgement) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(judgement.metrics)
    return told
