"""Health per rollout as a table, CSV or Parquet; the one module that imports polars."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
import polars as pl

from ng_capture.files.writing import AtomicFile
from ng_capture.outputs.forms import Form
from ng_capture.records.usage import UNKNOWN_USAGE, count
from ng_capture.verdicts.health.metrics import SUMS_OF_GYM
from ng_capture.verdicts.health.rollout import RolloutHealth

if TYPE_CHECKING:
    from ng_capture.outputs.tables.writing import TableWriter

_CHUNK = 10_000
_TEXTS = ("rollout_id", "verdict", "activity", "task", "group", "terminal_method", "terminal_call", "terminal_chain")
_LISTS = ("reasons", "models")
_FROM_MEASURES = ("calls", "zero_logprob_calls", "repeated_lines")
_FROM_RAW = ("damaged_lines", "length_stopped_calls", "calls_with_partial_usage")
_FROM_ACCOUNTING = {
    "generated_tokens_sampled": "captured",
    "generated_tokens_trained": "trained",
    "generated_tokens_context": "context",
}
_WHOLE = (
    "attempt",
    *_FROM_MEASURES,
    *SUMS_OF_GYM,
    *_FROM_ACCOUNTING,
    "generated_tokens_lost",
    "parent_link_failures",
    "longest_prompt",
    "longest_generation",
    "raw_calls",
    "failed_calls",
    *_FROM_RAW,
    *UNKNOWN_USAGE.__struct_fields__,
)
SCHEMA = pl.Schema(
    {
        **dict.fromkeys(_TEXTS, pl.String()),
        **dict.fromkeys(_LISTS, pl.List(pl.String())),
        "capture_incomplete": pl.Boolean(),
        **dict.fromkeys(_WHOLE, pl.Int64()),
        "delivered_fraction": pl.Float64(),
        "latency_total_ms": pl.Float64(),
    }
)
"""Columns and types, the same for any rollouts; what is not known is null."""


class RolloutTable:
    """Takes rollouts as they go by, and puts them under `path` when all are there: CSV, or Parquet if `parquet`.

    Raises what AtomicFile raises.
    """

    def __init__(self, path: Path, *, parquet: bool) -> None:
        self._file = AtomicFile(path)
        self._parquet = parquet
        self._writer: TableWriter | None = None
        self._rows: list[Mapping[str, object]] = []
        self._begun = False

    def __enter__(self) -> Self:
        self._file.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._flush()
                if self._writer is not None:
                    self._writer.close()
        except BaseException as failure:
            self._file.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._file.__exit__(kind, error, trace)

    def add(self, rollout: RolloutHealth) -> None:
        self._rows.append(_row(rollout))
        if len(self._rows) >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        """Write what has come since the last time; the first time also the head."""
        frame = pl.DataFrame(self._rows, schema=SCHEMA)
        self._rows = []
        if self._parquet:
            if self._writer is None:
                from ng_capture.outputs.tables.writing import TableWriter

                self._writer = TableWriter(self._file, frame.to_arrow().schema, Form.PARQUET)
            self._writer.write(frame.to_arrow())
        else:
            joined = frame.with_columns(pl.col(*_LISTS).list.join(";"))
            self._file.write(joined.write_csv(include_header=not self._begun).encode())
        self._begun = True


def _row(rollout: RolloutHealth) -> Mapping[str, object]:
    row: dict[str, Any] = dict.fromkeys(SCHEMA.names())
    row |= {"rollout_id": rollout.rollout_id, "verdict": rollout.verdict, "activity": rollout.activity}
    row["reasons"] = None if rollout.reasons is None else list(rollout.reasons)
    if (gym := rollout.metrics) is not None:
        row |= {name: getattr(gym, name) for name in (*SUMS_OF_GYM, "delivered_fraction", "capture_incomplete")}
        failures = gym.parent_link_failures
        row["parent_link_failures"] = None if failures is None else sum(failures.values())
        if (terminal := gym.terminal_attribution) is not None:
            row |= {"terminal_method": terminal.method, "terminal_call": terminal.call_id}
            row["terminal_chain"] = terminal.chain
    if (accounting := rollout.accounting) is not None:
        row |= {name: getattr(accounting, field) for name, field in _FROM_ACCOUNTING.items()}
        row["generated_tokens_lost"] = sum(accounting.lost.values())
    if (measures := rollout.measures) is not None:
        row |= {name: getattr(measures, name) for name in _FROM_MEASURES}
        row |= msgspec.structs.asdict(measures.place)
        row |= {"models": list(measures.models), "longest_prompt": max(measures.prompt_lengths, default=None)}
        row["longest_generation"] = max(measures.generation_lengths, default=None)
        if (raw := measures.raw) is not None:
            row |= {"raw_calls": raw.calls, "failed_calls": sum(raw.error_categories.values())}
            row |= {name: getattr(raw, name) for name in _FROM_RAW}
            row |= msgspec.structs.asdict(raw.usage)
            row["latency_total_ms"] = sum(raw.latencies) if raw.latencies else None
    # a sum that no column holds is no number of anything either
    return row | {name: count(row[name]) for name in _WHOLE}
