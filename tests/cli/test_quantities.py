"""Ages and sizes as people write them."""

import pytest

from ng_capture.errors import UsageError
from ng_capture_cli.quantities import in_bytes, number_of_bytes, patience, seconds


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("0s", 0), ("30s", 30), ("90m", 5400), ("12h", 43_200), ("14d", 1_209_600), ("2w", 1_209_600), ("1.5d", 129_600)],
)
def test_an_age_in_seconds(text: str, wanted: float) -> None:
    assert seconds(text, "--older-than") == wanted


@pytest.mark.parametrize(
    "text", ["", "14", "d", "-1d", "14 d", "14D", "1.d", ".5d", "1e3s", "infd", "14d ", "\u0661\u0664d", "14d\n"]
)
def test_what_is_no_age_is_wrong_use_and_names_the_option(text: str) -> None:
    with pytest.raises(UsageError, match="--older-than"):
        seconds(text, "--older-than")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", 0),
        ("17", 17),
        ("17B", 17),
        ("1K", 1000),
        ("1KB", 1000),
        ("1KiB", 1024),
        ("500GB", 500 * 10**9),
        ("500 GB", 500 * 10**9),
        ("1.5TiB", 3 * 2**39),
        ("2MiB", 2**21),
        ("3T", 3 * 10**12),
    ],
)
def test_a_size_in_bytes(text: str, wanted: int) -> None:
    assert number_of_bytes(text, "--max-bytes") == wanted


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1PB", "1gb", "1 G B", "1,5GB", "nan", "1GB "])
def test_what_is_no_size_is_wrong_use_and_names_the_option(text: str) -> None:
    with pytest.raises(UsageError, match="--max-bytes"):
        number_of_bytes(text, "--max-bytes")


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (1_234_567, "1.2 MB"),
        (5 * 10**9, "5.0 GB"),
        (10**12, "1.0 TB"),
        (5 * 10**15, "5000.0 TB"),
    ],
)
def test_bytes_as_people_read_them(number: int, wanted: str) -> None:
    assert in_bytes(number) == wanted


def test_an_amount_never_reads_as_a_thousand_of_its_unit() -> None:
    assert in_bytes(999_999) == "1.0 MB"


def test_a_size_beyond_all_numbers_is_none() -> None:
    with pytest.raises(UsageError, match=r"--max-bytes: 9{20}\.\.\. is no size"):
        number_of_bytes("9" * 400, "--max-bytes")


def test_a_wait_that_is_no_number_is_wrong_use() -> None:
    assert patience(2.5, "--lock-timeout") == 2.5
    with pytest.raises(UsageError, match="--lock-timeout"):
        patience(float("nan"), "--lock-timeout")
