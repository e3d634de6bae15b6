"""The map of contracts as a page: what each is, what it is authoritative for, what becomes of it in each other one."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ng_capture.contracts.interface import Contract, Feature
from ng_capture.contracts.losses import CONSEQUENCES, LOSS_CODES, Loss, lost
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
    yield "Every contract that is read is written as every one that is written, through one internal episode. The numbers say how many kinds of loss"
    yield "that are more than a note a conversion may report; `ng-capture convert --list --from X --to Y` names them, `--loss-report` tells what was lost.\n"
    targets = [each for each in CONTRACTS if each.writer is not None]
    yield f"| from \\ to | {' | '.join(f'`{each.name}`' for each in targets)} |"
    yield "|---|" + "---|" * len(targets)
    numbers = {(source.name, target.name): sum(1 for _ in lost(map(Loss, codes))) for source, target, codes in matrix()}
    for source in CONTRACTS:
        if source.reader is not None:
            yield f"| `{source.name}` | {' | '.join(str(numbers[source.name, target.name]) for target in targets)} |"
    yield ""
    yield "## What each loses\n"
    yield "A conversion may report what its source reports when it is read, and what its target reports when it is written, of what the source can hold."
    for contract in CONTRACTS:
        yield from _losses(contract)
    yield ""


def _losses(contract: Contract) -> Iterator[str]:
    yield f"\n### `{contract.name}`\n"
    if contract.reader is not None:
        yield f"- **read**: {_named(contract.reader.losses)}"
    if contract.writer is not None:
        of = defaultdict[Feature | None, list[str]](list)
        for code, feature in contract.writer.losses.items():
            of[feature].append(code)
        yield f"- **written**, of any source: {_named(of.pop(None, []))}"
        yield from (
            f"- **written**, of a source with {feature}: {_named(of[feature])}" for feature in Feature if of[feature]
        )


def _named(codes: Iterable[str]) -> str:
    return ", ".join(f"`{code}`" for code in sorted(codes)) or "nothing"


def _codes() -> Iterator[str]:
    yield "## The losses\n"
    yield from (f"- **{severity}**: {meaning}" for severity, meaning in CONSEQUENCES.items())
    yield ""
    yield "| code | severity | meaning |"
    yield "|---|---|---|"
    for code in LOSS_CODES.values():
        yield f"| `{code.name}` | {code.severity} | {code.meaning} |"
    yield ""
