"""What lies in fixtures/ingest/: small logs of several formats, and the store that `ng-capture ingest` makes of them.

python -m tests.support.golden        # writes fixtures/ingest/logs, and fixtures/ingest/store by the command

The store is made once and reviewed where it changes: a test holds the command against it, byte for byte.
"""

import gzip
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.support import logs
from tests.support.command import run
from tests.support.fixtures import ROOT
from tests.support.forge import Files, Row, in_lines, write_files
from tests.support.ingesting import dialogue, generation, in_files
from tests.support.raw_calls import calls, chat_call, result, says, streamed, system, user
from tests.support.runs import healthy

FOLDER = ROOT / "ingest"
COMMAND = ("logs", "--rollout-from", "metadata.run", "--log-probs", "raw")
"""Words of the command, in the folder."""


def _lines(rows: Sequence[Row]) -> bytes:
    return in_lines(json.dumps(row).encode() for row in rows)


def _two_choices() -> Row:
    (row,) = dialogue(1)
    choice = row["response"]["choices"][0]
    other = {**says("another"), "prompt_token_ids": [100, 101], "generation_token_ids": [77]}
    other["generation_log_probs"] = [-0.5]
    row["response"]["choices"] = [choice, {"index": 1, "message": other, "finish_reason": "stop"}]
    return row


def _streamed() -> Row:
    _, second = dialogue(2)
    ids = second["response"]["choices"][0]["message"]
    events: list[object] = [
        {
            "id": "s",
            "prompt_token_ids": ids["prompt_token_ids"],
            "choices": [{"index": 0, "delta": {"role": "assistant"}}],
        }
    ]
    for token, text in zip(generation(second), ("c answers ", "1"), strict=True):
        entry = {"token": f"token_id:{token}", "logprob": -0.25}
        choice = {"index": 0, "delta": {"content": text}, "token_ids": [token], "logprobs": {"content": [entry]}}
        events.append({"id": "s", "choices": [choice]})
    events.append({"id": "s", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return streamed(second, events)


def _tools() -> list[Row]:
    asked = [system("You mend querns."), user("What is a quern?")]
    calling = calls(("k1", "look_up", '{"word": "quern"}'), text="Let me look.", reasoning_content="I should.")
    then = [*asked, calling, result("k1", "a hand mill")]
    refused = {**chat_call("t1-refused", then, None, at=201.0, status_code=429), "response": {"error": {}}}
    return [
        chat_call("t0", asked, calling, prompt=[1, 2], generation=[3, 4], at=200.0, finish="tool_calls"),
        refused,
        chat_call("t1", then, says("A hand mill."), prompt=[1, 2, 3, 4, 5], generation=[6], at=202.0),
    ]


def sources() -> Files:
    """The logs by their names under logs/."""
    pairs = [
        {**logs.PAIR, "id": f"p{n}", "rollout_id": None, "headers": {}, "metadata": {"run": f"pairs-{n}"}}
        for n in range(2)
    ]
    broken = dialogue(3)
    broken[1]["response"]["choices"][0]["message"]["generation_log_probs"][0] = -9999.0
    return {
        "words.capture.jsonl": _lines([dialogue(1)[0], _streamed(), *dialogue(3)[2:]]),
        "tools.capture.jsonl.gz": gzip.compress(_lines(_tools()), mtime=0),
        "choices.capture.jsonl": _lines([_two_choices()]),
        "sentinel.capture.jsonl": b"\xef\xbb\xbf" + _lines(broken),
        "torn.capture.jsonl": _lines(dialogue(1)) + b'{"model_call_id": "c1", "dialect": "ch',
        "records.tokens.jsonl": in_lines(healthy("records").lines()),
        "pairs.jsonl": _lines(pairs),
        "proxy.har": json.dumps(logs.har(logs.har_entry("http://h/ng-rollout/proxied/v1/chat/completions"))).encode(),
        "sample.jsonl": _lines([logs.TINKER]),
        "traces.jsonl": _lines([logs.TRACE]),
        "spans.jsonl": _lines([logs.SPAN, logs.CLIENT_SPAN]),
        "notes.txt": b"no log\n",
    }


def written(folder: Path, *words: str) -> Files:
    """The store that the command makes of the logs in a folder, without locks, which hold nothing."""
    run("ingest", *COMMAND, *words, "--to", "store", "-q", cwd=folder)
    return in_files(folder / "store")


def main() -> None:
    """Write both."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_files(FOLDER / "logs", sources())
    made = written(FOLDER)
    shutil.rmtree(FOLDER / "store")
    write_files(FOLDER / "store", made)


if __name__ == "__main__":
    main()
