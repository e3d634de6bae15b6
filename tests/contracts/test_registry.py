"""All contracts together: each source is known as what it is, and no conversion reports what it does not declare."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ng_capture.contracts.conversion import Conversion, Converted
from ng_capture.contracts.interface import Contract, Head, losses_between
from ng_capture.contracts.losses import LOSS_CODES
from ng_capture.contracts.recognition import recognise
from ng_capture.contracts.registry import (
    CONTRACTS,
    matrix,
    readable,
    reader_of,
    validated,
    writable,
    writer_of,
)
from ng_capture.contracts.sources import Source
from ng_capture.errors import UsageError
from tests.support.atof_events import answer, ask, call, says, user
from tests.support.conversions import as_lines
from tests.support.corpus import REPOSITORY, corpus_root, why_absent

CORPUS = corpus_root() / "contracts"
REAL: dict[str, tuple[str, ...]] = {
    "atif": ("atif/valid/**/*.json", "atif/real_invalid/*.json"),
    "atof": ("atof/*.jsonl",),
    "gym": ("gym_rollouts/*.jsonl",),
    "harbor": ("atif/sft_traces/*.json",),
    "verifiers": ("verifiers/*.results.jsonl", "verifiers/v1_traces.jsonl"),
}
"""Where the real files of each contract lie in the corpus."""
CAPTURES = REPOSITORY / "fixtures" / "capture"

CHAT_PAIR = {
    "request": ask(user("hi"), model="m"),
    "response": answer(says(None, call("c1")), usage={"prompt_tokens": 1}),
}
MESSAGES_PAIR = {
    "request": {"model": "m", "max_tokens": 9, "system": "S", "messages": [user([{"type": "text", "text": "hi"}])]},
    "response": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "yo"}]},
}
RESPONSES_PAIR = {
    "request": {"model": "m", "instructions": "S", "input": "hi"},
    "response": {
        "object": "response",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yo"}]}],
    },
}
BY_HAND = {
    "chat": (CHAT_PAIR, CHAT_PAIR["request"], CHAT_PAIR["response"], [user("hi"), says("yo")]),
    "messages": (MESSAGES_PAIR, MESSAGES_PAIR["request"], MESSAGES_PAIR["response"]),
    "responses": (RESPONSES_PAIR, RESPONSES_PAIR["request"], RESPONSES_PAIR["response"]),
}
"""Documents of the contracts that the corpus has no files of."""
WRITERS = [each for each in CONTRACTS if each.writer is not None]


def real_files() -> list[tuple[str, Path]]:
    return [(name, path) for name, globs in REAL.items() for glob in globs for path in sorted(CORPUS.glob(glob))]


def contract_of(path: Path) -> Contract:
    (found,) = recognise([str(path)], None).sources
    return found.contract


def undeclared(contract: Contract, path: Path) -> Iterator[tuple[str, str, str]]:
    """What writing a source to every contract reports and does not declare."""
    for target in WRITERS:
        assert contract.reader is not None and target.writer is not None
        declared = losses_between(contract.reader, target.writer)
        for done in Conversion(contract.reader, target.writer).convert(Source(str(path))):
            yield from ((target.name, loss.code, loss.path) for loss in done.losses if loss.code not in declared)


@pytest.mark.parametrize("name", REAL)
def test_real_files_are_known_as_what_they_are_and_report_only_what_is_declared(name: str) -> None:
    files = [path for known, path in real_files() if known == name]
    if not files:
        pytest.skip(why_absent(CORPUS))
    for path in files:
        contract = contract_of(path)
        assert contract.name == name, path
        assert list(undeclared(contract, path)) == [], path


@pytest.mark.parametrize("name", BY_HAND)
def test_documents_of_an_api_are_known_and_report_only_what_is_declared(name: str, tmp_path: Path) -> None:
    for number, value in enumerate(BY_HAND[name]):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(value))
        contract = contract_of(path)
        assert contract.name == name, value
        assert list(undeclared(contract, path)) == [], value


def test_the_fixtures_are_known_as_captures_and_report_only_what_is_declared() -> None:
    contract = contract_of(CAPTURES)
    assert contract.name == "capture" and list(undeclared(contract, CAPTURES)) == []


def test_token_records_under_another_name_are_known_as_such(tmp_path: Path) -> None:
    path = tmp_path / "ids.jsonl"
    path.write_bytes((CAPTURES / "linear.tokens.jsonl").read_bytes())
    contract = contract_of(path)
    assert contract.name == "tokens" and list(undeclared(contract, path)) == []


@pytest.mark.parametrize("name", [*REAL, "capture"])
def test_what_is_written_is_known_as_what_it_was_written_as(name: str, tmp_path: Path) -> None:
    """And read again, and written to every contract, with declared losses alone."""
    sources = [path for known, path in real_files() if known == name] if name != "capture" else [CAPTURES]
    if not sources:
        pytest.skip(why_absent(CORPUS))
    for target in WRITERS:
        if target.reader is None:
            continue
        done = next((each for path in sources for each in _written(name, target, path)), None)
        if done is None:
            assert target.name == "tokens"
            continue
        assert done.written is not None
        path = tmp_path / f"again{target.name}.jsonl"
        path.write_bytes(b"".join(document + b"\n" for document in done.written.documents))
        contract = contract_of(path)
        # lines of a table that hold nothing but their records are records
        assert contract.name == target.name or (name, target.name, contract.name) == ("capture", "jsonl", "tokens")
        assert list(undeclared(contract, path)) == []


def _written(name: str, target: Contract, path: Path) -> Iterator[Converted]:
    assert target.writer is not None
    for done in Conversion(reader_of(name), target.writer).convert(Source(str(path))):
        if done.written is not None:
            yield done


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, [[]], {"a": 1}, {"kind": "span"}, {"prompt": "x"}])
def test_what_is_of_no_contract_is_known_as_none(value: object, tmp_path: Path) -> None:
    heads = (Head("x.json", False, value), Head("x", True, []))
    assert not [each.name for each in CONTRACTS for head in heads if each.reader and each.reader.recognises(head)]
    path = tmp_path / "x.json"
    path.write_bytes(as_lines([value]))
    assert contract_of(path).name == "unknown"


def test_every_loss_that_a_contract_declares_is_in_the_registry() -> None:
    for contract in CONTRACTS:
        declared = {
            *(contract.reader.losses if contract.reader else ()),
            *(contract.writer.losses if contract.writer else ()),
        }
        assert declared <= set(LOSS_CODES), contract.name


def test_the_matrix_is_every_reader_with_every_writer() -> None:
    pairs = [(source.name, target.name) for source, target, _ in matrix()]
    assert pairs == [(source, target) for source in readable() for target in writable()]
    assert len(set(pairs)) == len(pairs)


def test_names_are_given_once_and_each_is_read_or_written() -> None:
    names = [each.name for each in CONTRACTS]
    assert len(set(names)) == len(names) and {*readable(), *writable()} == set(names)
    assert {"atif", "atof", "gym", "harbor", "verifiers", "capture"} <= set(validated()) <= set(readable())


@pytest.mark.parametrize("name", ["nothing", "sft"])
def test_a_contract_that_is_not_read_is_wrong_use_with_a_hint(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: no contract that is read"):
        reader_of(name)


@pytest.mark.parametrize("name", ["nothing", "atof"])
def test_a_contract_that_is_not_written_is_wrong_use_with_a_hint(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: no contract that is written"):
        writer_of(name)
