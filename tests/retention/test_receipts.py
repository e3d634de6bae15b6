"""Which rollouts receipts cover."""

import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ng_capture.errors import UsageError
from ng_capture.retention.receipts import digest_of, read_coverage
from tests.support.retention import Disk, past_masked


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    made = Disk(tmp_path)
    made.add("r-1")
    made.add(past_masked("r-2"))
    return made


def test_a_receipt_covers_what_was_delivered_and_knows_what_was_masked(disk: Disk) -> None:
    coverage = read_coverage([disk.deliver()])
    assert (set(coverage.rollouts), set(coverage.masked), coverage.notes) == ({"r-1"}, {"r-2"}, ())
    (covered,) = coverage.rollouts["r-1"]
    lying = [
        _File(name, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for name in disk.names("r-1") - {"r-1.tokens.lock", "r-1.tokens.state.json"}
        if (path := disk.capture / name)
    ]
    assert covered.files == digest_of(lying)
    assert all(covered.files != digest_of(lying[:place] + lying[place + 1 :]) for place in range(len(lying)))


class _File(NamedTuple):
    name: str
    size: int
    sha256: str | None


A_FILE = _File("r-1.tokens.jsonl", 3, "a" * 64)


@pytest.mark.parametrize("change", [{"name": "r-1.tokens.jsonl.gz"}, {"size": 4}, {"sha256": "b" * 64}])
def test_a_file_with_another_name_size_or_digest_is_another_one(change: dict[str, Any]) -> None:
    assert digest_of([A_FILE]) != digest_of([A_FILE._replace(**change)])


def test_the_state_does_not_count_and_what_has_no_digest_equals_nothing() -> None:
    state = _File("r-1.tokens.state.json", 3, "c" * 64)
    assert digest_of([A_FILE]) == digest_of([state, A_FILE]) is not None
    assert digest_of([A_FILE._replace(sha256=None)]) is None


def test_a_receipt_whose_output_is_gone_covers_nothing_and_says_so(disk: Disk) -> None:
    receipt = disk.deliver()
    (disk.root / "out.jsonl").unlink()
    coverage = read_coverage([receipt])
    assert (coverage.rollouts, coverage.masked) == ({}, {})
    assert coverage.notes == (f"{receipt}: covers nothing: {disk.root / 'out.jsonl'} is gone or changed",)


@pytest.mark.parametrize("data", [b"", b"x", None], ids=["empty", "longer", "as long"])
def test_a_receipt_whose_output_changed_covers_nothing(disk: Disk, data: bytes | None) -> None:
    receipt, output = disk.deliver(), disk.root / "out.jsonl"
    whole = output.read_bytes()
    output.write_bytes(whole[:-2] + b" \n" if data is None else whole + data if data else b"")
    assert not read_coverage([receipt]).rollouts


def test_several_receipts_cover_together_and_one_without_its_output_takes_nothing_from_the_others(disk: Disk) -> None:
    receipts = [disk.deliver(name) for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    (disk.root / "b.jsonl").unlink()
    coverage = read_coverage(receipts)
    assert len(coverage.rollouts["r-1"]) == 2 and len(coverage.notes) == 1


def test_a_receipt_that_moved_with_its_output_covers_the_same(disk: Disk) -> None:
    receipt, elsewhere = Path(disk.deliver()), disk.root / "elsewhere"
    elsewhere.mkdir()
    for path in (receipt, disk.root / "out.jsonl"):
        path.rename(elsewhere / path.name)
    assert set(read_coverage([str(elsewhere / receipt.name)]).rollouts) == {"r-1"}


def test_a_rollout_that_is_trainable_but_not_in_the_output_is_not_covered(disk: Disk) -> None:
    receipt = Path(disk.deliver())
    receipt.write_bytes(receipt.read_bytes().replace(b'"covered":true', b'"covered":false'))
    coverage = read_coverage([str(receipt)])
    assert "r-1" not in coverage.rollouts and "r-1" not in coverage.masked


def test_no_receipts_cover_nothing() -> None:
    assert read_coverage([]).rollouts == {}


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[]"])
def test_what_is_no_receipt_is_wrong_use(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "x.receipt.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UsageError, match="receipt"):
        read_coverage([str(path)])


def test_a_receipt_that_was_cut_is_wrong_use(disk: Disk) -> None:
    receipt = Path(disk.deliver())
    receipt.write_bytes(receipt.read_bytes()[:-40])
    with pytest.raises(UsageError, match="cut"):
        read_coverage([str(receipt)])


def test_a_rollout_one_of_whose_files_has_no_digest_is_not_covered(disk: Disk) -> None:
    receipt = Path(disk.deliver())
    whole = receipt.read_bytes()
    begin, end = whole.index(b'"rollouts"'), whole.rindex(b'"output"')
    receipt.write_bytes(
        whole[:begin] + re.sub(rb'"sha256":"[0-9a-f]{64}"', b'"sha256":null', whole[begin:end]) + whole[end:]
    )
    coverage = read_coverage([str(receipt)])
    assert not coverage.rollouts and not coverage.masked
