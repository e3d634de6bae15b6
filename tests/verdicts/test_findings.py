"""A defect in one sentence with its numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.records.defects import Defect
from ng_capture.verdicts.findings import escaped, find
from ng_capture.verdicts.reasons import REASONS


def test_a_sentence_has_the_numbers_of_its_defect() -> None:
    found = find(Defect(reason="logprob_positive", call="c", found=0.5, position=3))
    assert found.message == "call c: log probability 0.5 at position 3 is above 1e-6"


@pytest.mark.parametrize(
    ("reason", "fields", "message"),
    [
        ("logprob_positive", {"call": "c"}, "call c: "),
        ("invalid_record", {}, ""),
        ("conflicting_records", {"call": "c"}, "call c: "),
        ("ambiguous_choices", {}, ""),
        ("rollout_frozen", {}, ""),
    ],
)
def test_a_sentence_whose_number_is_missing_falls_back_to_what_the_reason_means(
    reason: str, fields: dict[str, str], message: str
) -> None:
    assert find(Defect(reason=reason, **fields)).message == f"{message}{REASONS[reason].meaning}"  # type: ignore[arg-type]


# made with all their numbers, always
WHOLE = {"prefix_mismatch", "capture_incomplete", "parent_missing", "digest_mismatch"}


@pytest.mark.parametrize("reason", sorted(REASONS.keys() - WHOLE))
def test_every_reason_has_a_sentence_however_little_is_known(reason: str) -> None:
    told = find(Defect(reason=reason)).message
    assert told and "{" not in told


@pytest.mark.parametrize("reason", sorted(REASONS.keys() - WHOLE))
def test_no_sentence_of_a_reason_that_knows_its_call_says_none(reason: str) -> None:
    assert "None" not in find(Defect(reason=reason, call="c")).message


def test_what_stands_aside_says_so() -> None:
    assert find(Defect(reason="bom"), aside=True).message.endswith("(off the delivered chain: masks nothing here)")


@given(st.text())
def test_escaped_text_is_ascii_and_tells_letters_apart(text: str) -> None:
    made = escaped(text)
    assert made.isascii() and (made == text) == text.isascii()


def test_an_id_that_must_not_become_a_file_name_is_told_by_the_numbers_of_its_letters() -> None:
    defect = Defect(reason="bad_rollout_id", found="\u0435vil", detail="from the field")
    assert find(defect).message == "\\u0435vil must not become a file name (from the field)"
    assert find(defect.at(detail=None)).message == "\\u0435vil must not become a file name"
