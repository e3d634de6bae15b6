"""What a case of `bugs/` expects of one rollout: verdict, findings, counts, and its training row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Problems = Iterator[str]
Data = Mapping[str, Any]

_LOST = frozenset(
    {"bad_token_id", "damaged_line", "file_truncated", "invalid_record", "not_one_object_per_line", "nul_bytes"}
    | {"schema_too_new", "torn_tail"}
)
_UNLINKED = frozenset(
    {"ambiguous_parent", "conflicting_records", "delta_unresolvable", "digest_mismatch", "empty_prompt", "link_missing"}
    | {"parent_cycle", "parent_missing", "parent_unresolved", "prefix_mismatch"}
)
_FOLLOWS = {
    "ambiguous_retry": _UNLINKED,
    "capture_incomplete": _LOST | {"empty_capture"},
    "delta_unresolvable": _LOST | _UNLINKED,
    "empty_capture": _LOST | {"call_without_tokens", "retired"},
    "multiple_ends": _LOST | _UNLINKED,
    "multiple_roots": _LOST | _UNLINKED,
    "no_generated_tokens": _LOST,
    "parent_missing": _LOST,
    "terminal_not_captured": _LOST,
}
"""A reason that may stand beside those that a case gives, and what it then follows from: lost records, broken links.

`terminal_chain_broken` follows from whatever is wrong with a call.
"""


@dataclass(frozen=True)
class Told:
    """What was said of one rollout: the report, the entry of the receipt where there is one, its training rows."""

    report: Data
    receipt: Data | None
    rows: Sequence[Data]

    @property
    def sources(self) -> dict[str, Data]:
        return {"verify": self.report} | ({} if self.receipt is None else {"receipt": self.receipt})


def problems_of_rollout(expected: Data, report: Data, receipt: Data | None, rows: Sequence[Data]) -> Problems:
    """Whatever is not as expected; a key that nothing checks is a problem too."""
    told = Told(report, receipt, rows)
    for key, value in expected.items():
        if key in _CHECKS:
            yield from _CHECKS[key](told, value)
        elif key in _IN_REPORT:
            found = _IN_REPORT[key](report)
            if found != _plain(value):
                yield f"{key} {found}, expected {value}"
        elif key in _IN_ROW:
            yield from _in_the_row(told, key, value)
        else:
            yield f"nothing checks {key!r}"


def _verdict(told: Told, expected: str) -> Problems:
    for source, data in told.sources.items():
        if data["verdict"] != expected:
            yield f"{source}: {data['verdict']} ({', '.join(data['reasons'])}), expected {expected}"
    if expected == "masked" and told.rows:
        yield f"a masked rollout has {len(told.rows)} training rows"


def _reasons(told: Told, expected: list[str]) -> Problems:
    for source, data in told.sources.items():
        given = set(data["reasons"])
        more = [reason for reason in given - set(expected) if not _follows(reason, expected)]
        if more or not given >= set(expected):
            yield f"{source}: reasons {sorted(given)}, expected {expected}"


def _follows(reason: str, expected: list[str]) -> bool:
    if reason == "terminal_chain_broken":
        return bool(expected)
    return not _FOLLOWS.get(reason, frozenset()).isdisjoint(expected)


def _findings(told: Told, expected: list[Data]) -> Problems:
    for source, data in told.sources.items():
        for wanted in expected:
            if not any(_fits(finding, wanted) for finding in data["findings"]) and not _fit_together(data, wanted):
                alike = [finding for finding in data["findings"] if finding["reason"] == wanted["reason"]]
                yield f"{source}: no finding {wanted}, but {alike or [f['reason'] for f in data['findings']]}"


def _fits(finding: Data, wanted: Data) -> bool:
    return all(_plain(finding.get(key)) == _plain(value) for key, value in wanted.items())


def _fit_together(data: Data, wanted: Data) -> bool:
    """`lines` may be told by one finding for each line."""
    if "lines" not in wanted:
        return False
    each = [{**wanted, "line": line} for line in wanted["lines"]]
    for single in each:
        del single["lines"]
    return all(any(_fits(finding, single) for finding in data["findings"]) for single in each)


def _plain(value: object) -> object:
    """Lists of ids in one order; what is a number stays the number that it is."""
    return sorted(value, key=str) if isinstance(value, list) else value


def _notes(told: Told, expected: list[str]) -> Problems:
    missing = set(expected) - set(told.report["notes"])
    if missing:
        yield f"not noted: {sorted(missing)}; noted: {told.report['notes']}"


def _parents(told: Told, expected: Data) -> Problems:
    found = {call: told.report["parents"].get(call, "no such call") for call in expected}
    if found != expected:
        yield f"parents {found}, expected {expected}"


def _weight_versions(told: Told, expected: list[object]) -> Problems:
    if told.report["weight_versions"] != expected:
        yield f"weight versions {told.report['weight_versions']}, expected {expected}"
    for row in told.rows:
        in_row = {span["weight_version"] for span in row["spans"] if span["kind"] == "gen"}
        if in_row != set(expected):
            yield f"the row has weight versions {sorted(in_row)}, expected {expected}"


def _in_the_row(told: Told, key: str, expected: object) -> Problems:
    """The value in the only row of the rollout; numbers are compared exactly."""
    if len(told.rows) != 1:
        yield f"{len(told.rows)} rows, expected one with {key}"
    elif told.rows[0][key] != expected:
        yield f"{key} {told.rows[0][key]}, expected {expected}"


_CHECKS: dict[str, Callable[[Told, Any], Problems]] = {
    "verdict": _verdict,
    "reasons": _reasons,
    "findings": _findings,
    "notes": _notes,
    "parents": _parents,
    "weight_versions": _weight_versions,
}

_IN_ROW = frozenset({"tokens", "loss_mask", "logprobs", "truncated"})

_COUNTS = ("calls_read", "repeated_lines", "unidentified_marks", "chain_verifies")
_LISTS = (
    "delivered_calls",
    "empty_generation_calls",
    "failed_calls",
    "left_out_calls",
    "lost_calls",
    "truncated_calls",
)
_METRICS = ("generated_tokens_captured", "generated_tokens_delivered")


def _value_of(key: str) -> Callable[[Data], object]:
    return lambda report: _plain(report[key])


def _metric(key: str) -> Callable[[Data], object]:
    return lambda report: report["metrics"].get(key)


_IN_REPORT: dict[str, Callable[[Data], object]] = {
    **{key: _value_of(key) for key in (*_COUNTS, *_LISTS)},
    **{key: _metric(key) for key in _METRICS},
    "chains": lambda report: _plain([chain["calls"] for chain in report["chains"]]),
}
