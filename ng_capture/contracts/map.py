"""The map of contracts as a page: what each is, what it is authoritative for, what becomes of it in each other one."""

from collections.abc import Iterator

from ng_capture.contracts.interface import Contract
from ng_capture.contracts.losses import CONSEQUENCES, LOSS_CODES
from ng_capture.contracts.registry import CONTRACTS, matrix

_WORDS = """# The map of contracts

What stands around a rollout, who is right about what, and what a conversion loses. `ng-capture contracts` prints this page.

## Four words that are not one thing

| word | is | is not |
|---|---|---|
| rollout | one attempt at a task, under one id; all else is joined by it | a conversation: it may hold several, of several agents |
| record | what the model server saw of one call: exact ids, or the whole request and response | a step: retries, side calls and failures are records too |
| step | what an agent did in one turn, as its harness tells it | a record: a step may be made by several calls, or by none |
| trajectory | the steps of one agent in order, as they are handed on | proof: its text was rendered, and its ids, if any, copied |

The capture is authoritative for model calls: what was asked, sampled and counted. `verify` is authoritative for the reward, the harness for
what its tools did and how long they took. Nothing of that is merged when it is captured: each writes its own file, under the rollout's id, and
they are joined offline, where a disagreement can be seen and named. An export (ATIF, SFT messages, tables) is authoritative for nothing.
"""


def page() -> str:
    """The page in Markdown; the same registry gives the same page."""
    return "\n".join([_WORDS, *_contracts(), *_conversions(), *_codes()])


def _contracts() -> Iterator[str]:
    yield "## The contracts\n"
    yield "| name | what it is | authoritative for | joined by | |"
    yield "|---|---|---|---|---|"
    for each in CONTRACTS:
        yield f"| `{each.name}` | {each.title} | {each.authority} | {each.join_key} | {_ways(each)} |"
    yield ""


def _ways(contract: Contract) -> str:
    reader, writer = contract.reader, contract.writer
    ways = (
        ("read", reader is not None),
        ("written", writer is not None),
        ("checked", reader is not None and reader.validate is not None),
    )
    return ", ".join(word for word, there in ways if there)


def _conversions() -> Iterator[str]:
    yield "## The conversions\n"
    yield "Every pair goes through one internal episode. What is told is what may be lost, never what is; `--loss-report` tells that.\n"
    yield "| from | to | may report |"
    yield "|---|---|---|"
    for source, target, codes in matrix():
        yield f"| `{source.name}` | `{target.name}` | {', '.join(sorted(codes)) or 'nothing'} |"
    yield ""


def _codes() -> Iterator[str]:
    yield "## The losses\n"
    yield from (f"- **{severity}**: {meaning}" for severity, meaning in CONSEQUENCES.items())
    yield ""
    yield "| code | severity | meaning |"
    yield "|---|---|---|"
    for code in LOSS_CODES.values():
        yield f"| `{code.name}` | {code.severity} | {code.meaning} |"
    yield ""
