"""How long `ingest` takes over 1 GB of raw calls, and how much memory it needs. See README.md."""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.run import MIB, Cost, imports_of, measured, ng_capture, program, sizes

FACTORS = (1, 10)
WORDS = [f"word{number:03d}" for number in range(1000)]


@dataclass(frozen=True)
class Shape:
    """Rollouts of so many calls: a turn adds that many tokens to the prompt and that many words to the history."""

    calls: int
    tokens: int
    words: int


SHAPES = {"many": Shape(20, 500, 20), "growing": Shape(100, 200, 150)}


def main() -> int:
    """Ingest a tenth of the calls, then all of them: the time grows with the bytes, the memory does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="the best of so many runs (default: 1)")
    options = parser.parse_args()
    names = f"{'calls':>8} {'MB':>6} {'parse s':>8} {'ingest s':>9} {'ratio':>6} {'CPU':>6} {'again':>6}"
    print(f"{names} {'over imports MiB':>17} {'largest file':>13}")
    with tempfile.TemporaryDirectory(prefix="ng-capture-bench-") as place:
        for name, shape in SHAPES.items():
            for factor in FACTORS:
                logs = Path(place, name)
                size = write(logs, shape, options.megabytes * 1_000_000 * factor // FACTORS[-1])
                _print(name, logs, size, options.runs)
                shutil.rmtree(logs)
    return 0


def write(logs: Path, shape: Shape, size: int) -> int:
    """Raw calls of as many rollouts as make up that size; gives what they have."""
    logs.mkdir()
    written = number = 0
    while written < size:
        with open(logs / f"r-{number}.capture.jsonl", "wb") as file:
            for row in rollout(number, shape):
                written += file.write(orjson.dumps(row) + b"\n")
        number += 1
    return written


def rollout(number: int, shape: Shape) -> Iterator[dict[str, object]]:
    """The calls of one conversation in the chat dialect, with token fields at their messages."""
    chance = random.Random(number)
    ids: list[int] = []
    messages: list[dict[str, object]] = []
    for call in range(shape.calls):
        generated = shape.tokens // 2
        new = chance.choices(range(150_000), k=shape.tokens)
        prompt, generation = [*ids, *new[generated:]], new[:generated]
        said = [" ".join(chance.choices(WORDS, k=shape.words // 2)) for _ in range(2)]
        messages = [*messages, {"role": "user", "content": f"{call} {said[0]}"}]
        answer: dict[str, object] = {"role": "assistant", "content": f"{number}-{call} {said[1]}"}
        fields = {
            "prompt_token_ids": prompt,
            "generation_token_ids": generation,
            "generation_log_probs": [-chance.random() for _ in generation],
        }
        usage = {"prompt_tokens": len(prompt), "completion_tokens": generated}
        choice = {"index": 0, "message": {**answer, **fields}, "finish_reason": "stop"}
        yield {
            "model_call_id": f"{chance.getrandbits(128):032x}",
            "dialect": "chat",
            "started_at": 1.7e9 + call,
            "completed_at": 1.7e9 + call + 0.5,
            "status_code": 200,
            "request": {"model": "policy", "messages": messages, "temperature": 1.0},
            "response": {"id": f"resp-{number}-{call}", "model": "policy", "choices": [choice], "usage": usage},
        }
        messages = [*messages, answer]
        ids = [*prompt, *generation]


def _print(name: str, logs: Path, size: int, runs: int) -> None:
    store = logs.with_name("store")
    words = ng_capture("ingest", logs, "--to", store, "-q")
    parsed = _best([measured(program("parse_raw", logs)) for _ in range(runs)])
    costs = []
    for _ in range(runs):
        shutil.rmtree(store, ignore_errors=True)
        costs.append(measured(words))
    done, again = _best(costs), measured(words)
    base = measured(program("imports", *imports_of([*words, "--help"]), *_MODULES)).peak
    ratios = [done.wall / parsed.wall, done.cpu / parsed.cpu, again.wall / parsed.wall]
    told = f"{parsed.wall:>8.2f} {done.wall:>9.2f} {' '.join(f'{ratio:>6.1f}' for ratio in ratios)}"
    print(f"{name:>8} {size / 1e6:>6.0f} {told} {done.peak - base:>17.0f} {max(sizes(logs)) / MIB:>13.1f}", flush=True)
    shutil.rmtree(store)


_MODULES = ("ng_capture.ingest.ingest", "ng_capture_cli.ingest_report", "filelock", "zstandard")


def _best(costs: list[Cost]) -> Cost:
    return min(costs, key=lambda cost: cost.wall)


if __name__ == "__main__":
    sys.exit(main())
