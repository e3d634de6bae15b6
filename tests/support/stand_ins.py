"""What `ng_capture.load` asks of `datasets` and of torch, which few have: answered by pyarrow and by memory views.

The real libraries load the same files in `tests/trainers`; these say what they are given, everywhere.
"""

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.tables import table_of


def _from_generator(
    generator: Callable[..., Iterator[Mapping[str, Any]]], features: pa.Schema, gen_kwargs: Mapping[str, Any]
) -> pa.Table:
    return pa.Table.from_pylist(list(generator(**gen_kwargs)), schema=features)


DATASETS = SimpleNamespace(
    Dataset=SimpleNamespace(from_generator=_from_generator, from_parquet=pq.read_table, from_file=table_of),
    Features=SimpleNamespace(from_arrow_schema=lambda schema: schema),
    load_from_disk=table_of,
)
"""Datasets are tables, features are schemas."""

TORCH = SimpleNamespace(
    int32="i", int8="b", float32="f", frombuffer=lambda buffer, dtype: memoryview(buffer).cast("B").cast(dtype)
)
"""Tensors are views of the memory that they are made of."""
