"""Logs for `ng-capture ingest`, and what stands in a store after it.

write_logs(directory, 3)           # three calls a rollout: raw calls of r-1 and r-2, records of r-3
ingested(logs, store)              # bring them in by the library; gives the exit code of the command
contents(store)                    # every file but locks, by name
trainable(store)                   # the rollouts that verify trusts
"""

from pathlib import Path
from typing import Any

from ng_capture.files.listing import list_rollouts
from ng_capture.ingest.ingest import Ingestion, Unwritten, Wanted
from ng_capture.ingest.sources.recognise import recognise
from ng_capture.outputs.verify import VerifyTask, judge_task
from ng_capture.verdicts.findings import find
from ng_capture.verdicts.judge import Judging
from ng_capture.verdicts.policies import Policy
from tests.support.forge import Files, Forge, Row
from tests.support.raw_calls import chat_call, says, user, write_capture

RAW = ("r-1", "r-2")
RECORDS = "r-3"


def conversation(rollout_id: str, count: int) -> list[Row]:
    """Raw calls of one conversation: each prompt is the sequence before it and two ids more."""
    turns: list[Row] = []
    ids: list[int] = []
    rows = []
    for number in range(count):
        turns = [*turns, user(f"question {number} of {rollout_id}")]
        answer = says(f"answer {number} of {rollout_id}")
        prompt, generation = [*ids, 100 + number, 200 + number], [300 + number, 9]
        name = f"{rollout_id}-call-{number}"
        rows.append(chat_call(name, turns, answer, prompt=prompt, generation=generation, at=float(number)))
        turns, ids = [*turns, answer], [*prompt, *generation]
    return rows


def records(count: int) -> Forge:
    """The same as token records."""
    forge = Forge(RECORDS)
    call = forge.root([1, 2], [3], id="c-0")
    for number in range(1, count):
        call = call.then([10 + number], [20 + number], id=f"c-{number}")
    return forge


def write_logs(directory: Path, count: int) -> Path:
    """Logs of three rollouts of so many calls; gives their folder."""
    for rollout_id in RAW:
        write_capture(directory, rollout_id, conversation(rollout_id, count))
    (directory / f"{RECORDS}.tokens.jsonl").write_bytes(b"".join(line + b"\n" for line in records(count).lines()))
    return directory


def ingested(logs: Path, store: Path, **wanted: Any) -> int:
    """Do what the command does, in this process."""
    ingestion = Ingestion(recognise([str(logs)]), store, Wanted(**wanted))
    defects = list(ingestion.defects)
    for rollout in ingestion.write():
        if isinstance(rollout, Unwritten):
            return 3
        defects += rollout.defects
    return int(any(find(defect).severity == "error" for defect in defects))


def contents(store: Path) -> Files:
    """The bytes of every file; locks have none, and a store that is not there has no files."""
    paths = store.iterdir() if store.exists() else ()
    return {path.name: path.read_bytes() for path in paths if not path.name.endswith(".lock")}


def trainable(store: Path) -> set[str]:
    """The rollouts of a store that verify trusts."""
    if not store.exists():
        return set()
    listing = list_rollouts([str(store)])
    tasks = [
        VerifyTask(rollout_id, listing.get(rollout_id), None, Judging(Policy.TERMINAL)) for rollout_id in listing.ids
    ]
    return {task.rollout_id for task in tasks if judge_task(task).verdict == "trainable"}
