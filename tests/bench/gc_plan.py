"""How long `gc --dry-run` takes over a directory of 200,000 files, and how much memory it needs. See README.md."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.run import Cost, measured, ng_capture, program
from tests.support.retention import past

FILES_EACH = 4
DAY = 86_400.0
FACTORS = (1, 10)


def main() -> int:
    """Plan a tenth of the directory, then all of it: the time grows with the files, the memory does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200_000)
    files = parser.parse_args().files
    print(f"{'files':>10} {'to plan':>10} {'lstat s':>9} {'plan s':>9} {'ratio':>7} {'plan MiB':>9}")
    with tempfile.TemporaryDirectory() as place:
        for factor in FACTORS:
            rollouts = files // FILES_EACH * factor // FACTORS[-1]
            directory = Path(place, str(factor))
            _write(directory, rollouts)
            receipt = _deliver(directory)
            young = _planned(directory, receipt, "300d")
            _print(rollouts, "young", directory, young)
            _print(rollouts, "covered", directory, _planned(directory, receipt, "14d"))
    return 0


def _write(directory: Path, rollouts: int) -> None:
    """Rollouts of two calls that were made a month ago: records, calls, a state and a lock file."""
    directory.mkdir()
    then = time.time() - 30 * DAY
    made = past("ROLLOUT").files()
    for number in range(rollouts):
        name = f"r-{number}"
        for file, data in made.items():
            _old(directory / file.replace("ROLLOUT", name), data.replace(b"ROLLOUT", name.encode()), then)
        _old(directory / f"{name}.capture.jsonl", b"", then)
        _old(directory / f"{name}.tokens.lock", b"", then)


def _old(path: Path, data: bytes, then: float) -> None:
    path.write_bytes(data)
    os.utime(path, (then, then))


def _deliver(directory: Path) -> Path:
    output = directory.with_suffix(".jsonl")
    measured(ng_capture("rebuild", directory, "-o", output, "-q"))
    return Path(f"{output}.receipt.json")


def _planned(directory: Path, receipt: Path, age: str) -> Cost:
    return measured(ng_capture("gc", directory, "--delivered-to", receipt, "--older-than", age, "--dry-run"))


def _print(rollouts: int, what: str, directory: Path, cost: Cost) -> None:
    bound = measured(program("look", directory))
    numbers = f"{bound.wall:>9.2f} {cost.wall:>9.2f} {cost.wall / bound.wall:>7.1f} {cost.peak:>9.0f}"
    print(f"{rollouts * FILES_EACH:>10,} {what:>10} {numbers}")


if __name__ == "__main__":
    sys.exit(main())
