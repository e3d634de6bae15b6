"""Every source is checked by the rules of its contract, and what was not checked is told."""

from pathlib import Path

import pytest

from ng_capture.contracts.recognition import recognise
from ng_capture.contracts.validation import validate
from ng_capture.errors import UsageError
from tests.support.contracts import atif, chat, write


def rules(*paths: Path) -> list[tuple[str, list[str]]]:
    """The contract of each source with the rules that it breaks."""
    found = validate(recognise([str(path) for path in paths], None))
    return [(each.contract, [fault.rule for fault in each.faults]) for each in found]


def test_each_source_has_its_own_faults(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "a.json", atif()), write(tmp_path / "b.json", atif(steps=[]))
    assert rules(good, bad) == [("atif", []), ("atif", ["atif.steps.empty"])]


def test_what_has_no_rules_is_told_as_unchecked_beside_what_has(tmp_path: Path) -> None:
    assert rules(write(tmp_path / "a.json", atif()), write(tmp_path / "c.json", chat())) == [
        ("atif", []),
        ("chat", ["chat.unchecked"]),
    ]


def test_where_nothing_has_rules_validation_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no rules here") as raised:
        rules(write(tmp_path / "c.json", chat()))
    assert "atif" in str(raised.value.hint)
