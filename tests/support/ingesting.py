"""`ng-capture ingest` as a user runs it, and what it left.

done = ingest(store, "a.jsonl", "--delta")     # ng-capture ingest -f json a.jsonl --delta --to store
told_calls(done)["c1"]["problems"]             # the calls of its document, which has the published shape
stored(store, "r-1")["c1"]["digest"]           # the records that it wrote
trained(store)                                 # the tokens with loss, as `rebuild --policy all` gives them
dialogue(3)                                    # raw calls that go on with one another, words and tokens
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ng_capture.outputs.shapes import SHAPES
from tests.support.command import Run, run, strict_json
from tests.support.corpus import json_lines
from tests.support.forge import Row
from tests.support.raw_calls import chat_call, says, user


def ingest(store: Path, *words: object, cwd: Path | None = None, **environment: str) -> Run:
    """Bring the sources into the store; words are sources and options."""
    return run("ingest", "-f", "json", *words, "--to", store, cwd=cwd, **environment)


def document(done: Run) -> dict[str, Any]:
    """What a run printed; fails where that has not the published shape."""
    SHAPES["ingest-document"].model_validate_json(done.out)
    told: dict[str, Any] = strict_json(done.out)
    return told


def told_calls(done: Run) -> dict[str, Row]:
    """The calls of a run by their ids; fails where two have one id."""
    calls = [call for rollout in document(done)["rollouts"] for call in rollout["calls"]]
    told = {call["call_id"]: call for call in calls}
    assert len(told) == len(calls)
    return told


def reasons(done: Run) -> dict[str, int]:
    counted: dict[str, int] = document(done)["summary"]["reasons"]
    return counted


def actions(done: Run) -> Counter[str]:
    """How many calls became what."""
    return Counter(call["action"] for call in told_calls(done).values())


def stored(store: Path, rollout_id: str) -> dict[str, Row]:
    """The records of a rollout by their calls."""
    return {row["model_call_id"]: row for row in json_lines(store / f"{rollout_id}.tokens.jsonl")}


def links(store: Path, rollout_id: str) -> dict[str, str | None]:
    """What each call continues, and `?reason` for one of which that is not known."""
    return {
        call: f"?{row['parent_resolution_reason']}"
        if row["parent_resolution"] == "unresolved"
        else row["parent_call_id"]
        for call, row in stored(store, rollout_id).items()
    }


def in_files(store: Path) -> dict[str, bytes]:
    """Every file of the store that holds something."""
    return {path.name: data for path in sorted(store.iterdir()) if (data := path.read_bytes())}


def verdicts(*paths: Path | str) -> dict[str, Row]:
    return {row["rollout_id"]: row for row in run("verify", *paths, "-f", "jsonl", "-q").rows}


def verdict(store: Path, rollout_id: str = "r-1") -> tuple[str, list[str]]:
    """`trainable` or `masked`, and why."""
    told = verdicts(store)[rollout_id]
    return told["verdict"], told["reasons"]


def training_rows(store: Path, policy: str = "all") -> list[Row]:
    """The rows without what names the files that they are made of."""
    rows = run("rebuild", store, "--to", "rows", "--policy", policy, "-q", "-o", "-").rows
    return [{key: value for key, value in row.items() if key != "sources"} for row in rows]


def trained(store: Path, rollout_id: str | None = None) -> list[int]:
    """Every token with loss, under the policy that gives most of them."""
    rows = [row for row in training_rows(store) if rollout_id in (None, row["rollout_id"])]
    return sorted(token for row in rows for token, loss in zip(row["tokens"], row["loss_mask"], strict=True) if loss)


def dialogue(count: int, name: str = "c", *, start: int = 100) -> list[Row]:
    """Calls `c0`, `c1`, ...: each sends the whole conversation again, and its prompt all tokens before it."""
    turns: list[Row] = []
    ids: list[int] = []
    made = []
    for number in range(count):
        first = start + 10 * number
        turns, ids = [*turns, user(f"{name} asks {number}")], [*ids, first, first + 1]
        answer, generation = says(f"{name} answers {number}"), [first + 5, first + 6]
        made.append(chat_call(f"{name}{number}", turns, answer, prompt=ids, generation=generation, at=start + number))
        turns, ids = [*turns, answer], [*ids, *generation]
    return made


def generation(row: Row) -> list[int]:
    """The generated tokens of a call of `dialogue`."""
    ids: list[int] = row["response"]["choices"][0]["message"]["generation_token_ids"]
    return ids


def generations(rows: Iterable[Row]) -> list[int]:
    return sorted(token for row in rows for token in generation(row))


def going_on(
    last: Row, text: str, ids: Sequence[int], answer: str, sampled: Sequence[int], *, name: str, at: float
) -> Row:
    """A call that goes on with the conversation of another: its answer, and one more question."""
    message = last["response"]["choices"][0]["message"]
    said = {key: value for key, value in message.items() if not key.startswith(("prompt_", "generation_"))}
    asked = [*last["request"]["messages"], said, user(text)]
    return chat_call(name, asked, says(answer), prompt=ids, generation=sampled, at=at)
