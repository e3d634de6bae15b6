"""The contracts by their names, and which of them a source is."""

from collections.abc import Iterator

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.atof.contract import ATOF
from ng_capture.contracts.captures.contracts import CAPTURE, EVAL, JSONL, TOKENS
from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.exchanges.sft import SFT
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.harbor_export import HARBOR
from ng_capture.contracts.interface import Contract, Reader, Writer, losses_between
from ng_capture.contracts.responses.contract import RESPONSES
from ng_capture.contracts.verifiers.contract import VERIFIERS
from ng_capture.errors import UsageError

# the first that recognises a source reads it: the particular before the general
CONTRACTS: tuple[Contract, ...] = (
    CAPTURE,
    ATIF,
    ATOF,
    GYM,
    VERIFIERS,
    RESPONSES,
    HARBOR,
    MESSAGES,
    CHAT,
    SFT,
    JSONL,
    TOKENS,
    EVAL,
)


def reader_of(name: str) -> Reader:
    """The reader of a contract; raises UsageError where there is none."""
    for contract in CONTRACTS:
        if contract.name == name and contract.reader is not None:
            return contract.reader
    raise UsageError(f"{name}: no contract that is read", hint=f"one of {', '.join(readable())}")


def writer_of(name: str) -> Writer:
    """The writer of a contract; raises UsageError where there is none."""
    for contract in CONTRACTS:
        if contract.name == name and contract.writer is not None:
            return contract.writer
    raise UsageError(f"{name}: no contract that is written", hint=f"one of {', '.join(writable())}")


def readable() -> list[str]:
    """The names of the contracts that are read."""
    return [each.name for each in CONTRACTS if each.reader is not None]


def writable() -> list[str]:
    """The names of the contracts that are written."""
    return [each.name for each in CONTRACTS if each.writer is not None]


def matrix() -> Iterator[tuple[Contract, Contract, frozenset[str]]]:
    """Every conversion that is there: from, to, and the codes of the losses that it may report."""
    for source in CONTRACTS:
        for target in CONTRACTS:
            if source.reader is not None and target.writer is not None:
                yield source, target, losses_between(source.reader, target.writer)


def validated() -> list[str]:
    """The names of the contracts whose documents are checked."""
    return [each.name for each in CONTRACTS if each.reader is not None and each.reader.validate is not None]
