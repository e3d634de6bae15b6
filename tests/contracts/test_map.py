"""The page on the contracts says what the code does."""

from pathlib import Path

import ng_capture.contracts
from ng_capture.contracts.losses import LOSS_CODES
from ng_capture.contracts.map import page
from ng_capture.contracts.registry import CONTRACTS, matrix, readable, validated, writable

BESIDE = Path(ng_capture.contracts.__file__).with_name("MAP.md")


def cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip("|").split("|")]


def section(title: str) -> list[str]:
    return page().split(f"\n## {title}\n")[1].split("\n## ")[0].splitlines()


def test_the_page_beside_the_code_is_the_one_that_is_printed() -> None:
    assert BESIDE.read_text() == page(), "ng-capture contracts > ng_capture/contracts/MAP.md"


def test_every_contract_has_its_line_with_what_can_be_done_with_it() -> None:
    ways = {cells(line)[0]: cells(line)[-1] for line in section("The contracts") if line.startswith("| `")}
    assert list(ways) == [contract.name for contract in CONTRACTS]
    for name, told in ways.items():
        known = (("read", readable()), ("written", writable()), ("checked", validated()))
        assert told == ", ".join(word for word, names in known if name in names)


def test_every_conversion_has_its_number_of_losses() -> None:
    table = section("The conversions")
    heads = cells(next(line for line in table if line.startswith("| from")))[1:]
    rows = {cells(line)[0]: dict(zip(heads, cells(line)[1:], strict=True)) for line in table if line.startswith("| `")}
    for source, target, codes in matrix():
        taken = sum(LOSS_CODES[code].severity != "note" for code in codes)
        assert rows[source.name][target.name] == str(taken)


def test_every_loss_that_a_contract_declares_is_a_code_with_a_meaning_on_the_page() -> None:
    declared = {code for _, _, codes in matrix() for code in codes}
    assert declared <= LOSS_CODES.keys()
    lines = section("The losses")
    for code in map(LOSS_CODES.__getitem__, declared):
        assert f"| `{code.name}` | {code.severity} | {code.meaning} |" in lines


def test_every_code_can_happen_somewhere() -> None:
    declared = {code for _, _, codes in matrix() for code in codes}
    assert LOSS_CODES.keys() - declared == set()
