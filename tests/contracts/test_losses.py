"""Losses and faults are data with fixed names."""

from ng_capture.contracts.losses import CONSEQUENCES, LOSS_CODES, Loss, lost, merged
from ng_capture.contracts.rules import Fault, has_errors, pointer, table


def test_every_code_has_a_severity_that_is_explained() -> None:
    assert {code.severity for code in LOSS_CODES.values()} == set(CONSEQUENCES)


def test_a_note_takes_nothing_away() -> None:
    losses = [Loss("call_without_output"), Loss("tokens_dropped")]
    assert [loss.code for loss in lost(losses)] == ["tokens_dropped"]


def test_losses_of_one_code_and_detail_are_counted_at_the_first_place() -> None:
    losses = [
        Loss("tokens_dropped", "/a"),
        Loss("row_fields_dropped", detail="x"),
        Loss("tokens_dropped", "/b", count=2),
        Loss("row_fields_dropped", detail="y"),
    ]
    assert merged(losses) == (
        Loss("tokens_dropped", "/a", count=3),
        Loss("row_fields_dropped", detail="x"),
        Loss("row_fields_dropped", detail="y"),
    )


def test_a_pointer_escapes_what_has_a_meaning_in_pointers() -> None:
    assert pointer("steps", 3, "a/b~c") == "/steps/3/a~1b~0c"
    assert pointer() == ""


def test_only_errors_make_a_document_unusable() -> None:
    warning = Fault("x.y", "warning", "odd")
    assert not has_errors([warning]) and has_errors([warning, Fault("x.z", "error", "wrong")])


def test_a_table_is_read_as_rules() -> None:
    rules = table("x.y | error | is wrong\nx.z | info | is so")
    assert [(rule.name, rule.severity) for rule in rules.values()] == [("x.y", "error"), ("x.z", "info")]
