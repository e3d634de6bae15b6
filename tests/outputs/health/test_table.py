"""Health per rollout as a table: whole or not at all, in pieces that do not grow with the run."""

import resource
from hashlib import sha512
from pathlib import Path

import polars as pl
import pytest

from ng_capture.errors import SurroundingsError
from ng_capture.outputs.health.table import SCHEMA, RolloutTable
from tests.support.rollout_health import measures, raw, rollout

MANY = 10_003
ENDINGS = ["csv", "parquet"]


def read(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_of_many_rollouts_has_one_head_and_every_rollout_once(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rollouts.{ending}"
    with RolloutTable(path, parquet=ending == "parquet") as table:
        for number in range(MANY):
            table.add(rollout(f"{number}-0"))
    frame = read(path)
    assert frame.columns == SCHEMA.names()
    assert frame["rollout_id"].to_list() == [f"{number}-0" for number in range(MANY)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_without_rollouts_has_its_columns(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rollouts.{ending}"
    with RolloutTable(path, parquet=ending == "parquet"):
        pass
    frame = read(path)
    assert (frame.columns, frame.height) == (SCHEMA.names(), 0)


def test_what_is_not_known_is_null_and_never_0(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.parquet"
    with RolloutTable(path, parquet=True) as table:
        table.add(rollout("known", measures=measures(raw=raw(latencies=(1.5, 2.0)))))
        table.add(rollout("without raw calls", measures=measures()))
        table.add(rollout("nothing"))
    assert pl.read_parquet(path).select("rollout_id", "calls", "raw_calls", "latency_total_ms").rows() == [
        ("known", 1, 1, 3.5),
        ("without raw calls", 1, None, None),
        ("nothing", None, None, None),
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_that_fails_leaves_the_old_table(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rollouts.{ending}"
    path.write_bytes(b"old")
    with pytest.raises(KeyError), RolloutTable(path, parquet=ending == "parquet") as table:
        table.add(rollout("1-0"))
        raise KeyError("1-1")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [(path.name, b"old")]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_disk_without_room_leaves_the_old_table(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rollouts.{ending}"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(SurroundingsError), RolloutTable(path, parquet=ending == "parquet") as table:
            for number in range(MANY // 2):
                # more than what is held in memory of a file, however it is packed
                table.add(rollout(sha512(b"%d" % number).hexdigest() * 2 + sha512(b"%x" % -number).hexdigest() * 2))
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [(path.name, b"old")]
