"""Measure ng-capture against the bars of performance.md; prints a table of ratios and never judges by exit code.

See README.md. Costs are user and system CPU seconds of child processes, medians of interleaved runs.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

HERE = Path(__file__).parent
MIB = 1 << 20
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
TRAINABLE_OR_MASKED = (0, 1)

# the bars of performance.md
TIMED = ("full", "delta", "huge")
VERIFY_TO_BOUND = {"full": 3.0, "delta": 3.5, "huge": 2.0}
VERIFY_TO_PARSING = {"full": 0.8}
LINEAR = ("ten", "thousand", "huge")
OTHER_SHAPES = ("retries", "reversed", "forks")
PEAK = 60.0
PEAK_FILES = 4.0
TABLE_PEAK = 200.0
PARQUET_TOKEN = 3.5
TWO_JOBS = 1.7
BIG_ENOUGH = 1.5e9
TABLES = {"rows": "rows.parquet", "hf-labels": "labels.arrow", "llamafactory": "dataset"}
"""A columnar output of each kind, by the format that is written."""


class DataSets:
    """Capture directories by name, made when first asked for and kept."""

    def __init__(self, tool: Path, directory: Path, scale: float) -> None:
        self._tool = tool
        self._directory = directory
        self._suffix = "" if scale == 1 else f"-{scale:g}"
        linear = ["--calls", "20", "--final-tokens", "20000"]
        small = ["--calls", "10", "--final-tokens", "5000"]
        huge = ["--rollouts", "1", "--calls", _scaled(200, scale), "--final-tokens", "120000"]
        self._options = {
            "full": ["--rollouts", _scaled(200, scale), *linear],
            "delta": ["--rollouts", _scaled(200, scale), *linear, "--mode", "delta"],
            "huge": huge,
            "ten": ["--rollouts", "10", *small],
            "thousand": ["--rollouts", _scaled(1000, scale), *small],
            "retries": [*huge, "--retry-every", "2"],
            "forks": [*huge, "--mode", "delta", "--retry-every", "1"],
            "big": ["--rollouts", _scaled(1400, scale), *linear],
        }

    def __getitem__(self, name: str) -> Path:
        path = self._directory / (name + self._suffix)
        if not path.exists():
            print(f"making {path}", file=sys.stderr)
            part = path.with_name(path.name + ".part")
            part.mkdir(parents=True, exist_ok=True)
            if name == "reversed":
                measured(program("reverse_lines", self["huge"], part))
            else:
                measured([sys.executable, str(self._tool), "--out", str(part), *self._options[name]])
            part.rename(path)
        return path


def _scaled(count: int, scale: float) -> str:
    return str(max(2, round(count * scale)))


def sizes(directory: Path) -> list[int]:
    """Bytes of every file."""
    return [entry.stat().st_size for entry in os.scandir(directory)]


class Failed(Exception):
    """A child ended otherwise than it should."""


@dataclass(frozen=True)
class Cost:
    """What one process took: CPU and wall seconds, and MiB at its peak."""

    cpu: float
    wall: float
    peak: float


def program(name: str, *arguments: object) -> list[str]:
    """The command line of one of the programs."""
    return [sys.executable, str(HERE / "programs.py"), name, *map(str, arguments)]


def ng_capture(*arguments: object) -> list[str]:
    """The command line of ng-capture in this interpreter."""
    return [sys.executable, "-c", "from ng_capture_cli.main import run; run()", *map(str, arguments)]


def _environment() -> dict[str, str]:
    """Compiled modules may be kept, as those of an installed package are."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measured(command: Sequence[str]) -> Cost:
    """Run a child; raises Failed.

    The peak of a child is never below this process's own: so nothing large may be held here.
    """
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=_environment())
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in TRAINABLE_OR_MASKED:
            errors.seek(0)
            raise Failed(f"exit code {child.returncode} of {' '.join(command[:12])}\n{errors.read().decode()}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * RSS_UNIT / MIB)


def medians(commands: Mapping[str, Sequence[str]], runs: int) -> dict[str, Cost]:
    """The median cost of each command, run in turns."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            costs[name].append(measured(command))
    return {
        name: Cost(*(statistics.median(getattr(cost, field) for cost in own) for field in ("cpu", "wall", "peak")))
        for name, own in costs.items()
    }


def imports_of(command: Sequence[str]) -> list[str]:
    """The modules that a command of this interpreter imports, in the order in which they were ready."""
    done = subprocess.run([command[0], "-X", "importtime", *command[1:]], capture_output=True, text=True, check=False)
    lines = (line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:"))
    return [parts[2].strip() for parts in lines][1:]


@dataclass(frozen=True)
class Row:
    """One line of the table; `bar` is None where performance.md has none."""

    measure: str
    data: str
    value: float
    unit: str
    bar: float | None = None
    at_least: bool = False

    def __str__(self) -> str:
        shown = f"{self.measure:<38}{self.data:<10}{self.value:8.2f} {self.unit:<8}"
        if self.bar is None:
            return shown.rstrip()
        kept = self.value >= self.bar if self.at_least else self.value <= self.bar
        sign = ">=" if self.at_least else "<="
        return f"{shown}{sign} {self.bar:<8.4g}{'ok' if kept else 'MISSED'}"


class Bench:
    """The measures, each a generator of rows."""

    def __init__(self, data: DataSets, out: Path, runs: int, *, big: bool) -> None:
        self._data = data
        self._out = out
        self._runs = runs
        self._big = big

    def speed(self) -> Iterator[Row]:
        """CPU of the commands against the lower bound and against parsing the same lines."""
        for name in TIMED:
            directory = self._data[name]
            baselines = {"bound": program("lower_bound", directory), "lines": program("parse_lines", directory)}
            cost = medians({**baselines, **self._commands(directory)}, self._runs)
            cpu = {each: own.cpu for each, own in cost.items()}
            yield Row("lower bound, CPU", name, cpu["bound"], "s")
            yield Row("verify / lower bound", name, cpu["verify"] / cpu["bound"], "x", VERIFY_TO_BOUND[name])
            yield Row("verify / orjson.loads", name, cpu["verify"] / cpu["lines"], "x", VERIFY_TO_PARSING.get(name))
            for command in ("rebuild rollouts", "rebuild rows"):
                yield Row(f"{command} / orjson.loads", name, cpu[command] / cpu["lines"], "x")

    def start_up(self) -> Iterator[Row]:
        """CPU of runs with next to nothing to do: it is in every cost of `speed`, the bound's and the command's."""
        commands = {"nothing": program("nothing"), "verify": ng_capture("verify", self._one_rollout())}
        cost = medians(commands, max(5, self._runs))
        yield Row("start-up of python", "-", 1000 * cost["nothing"].cpu, "ms")
        yield Row("verify, one small rollout", "-", 1000 * cost["verify"].cpu, "ms")

    def memory(self) -> Iterator[Row]:
        """Peaks over an interpreter with the same imports."""
        bars = dict.fromkeys(LINEAR, PEAK)
        for name in OTHER_SHAPES:
            bars[name] = PEAK + PEAK_FILES * max(sizes(self._data[name])) / MIB
        base = {name: self._imports_peak(command) for name, command in self._commands(self._one_rollout()).items()}
        for name, bar in bars.items():
            for command, line in self._commands(self._data[name]).items():
                yield Row(f"{command}, peak", name, measured(line).peak - base[command], "MiB", bar)

    def tables(self) -> Iterator[Row]:
        """Memory and size of columnar output."""
        for name in (*(["big"] if self._big else []), "ten", "thousand", "full"):
            for to, out in TABLES.items():
                place = self._out / out
                cost = measured(ng_capture("rebuild", self._data[name], "--to", to, "-o", place))
                yield Row(f"{to} to {out}, peak", name, cost.peak, "MiB", TABLE_PEAK)
                cost = measured(ng_capture("verify", "--export", place, self._data[name]))
                yield Row(f"{out} proven, peak", name, cost.peak, "MiB", TABLE_PEAK)
        out, rows = self._out / TABLES["rows"], self._out / "rows.jsonl"
        measured(ng_capture("rebuild", self._data["full"], "--to", "rows", "-o", rows))
        yield Row("Parquet, bytes a token", "full", out.stat().st_size / _tokens(rows), "B", PARQUET_TOKEN)

    def jobs(self) -> Iterator[Row]:
        """Wall time of one process against two."""
        if not self._big:
            return
        directory = self._data["big"]
        bar = TWO_JOBS if sum(sizes(directory)) >= BIG_ENOUGH else None
        for command, line in self._commands(directory).items():
            cost = medians({"one": line, "two": [*line, "--jobs", "2"]}, self._runs)
            yield Row(f"{command}, 1 / 2 jobs, wall", "big", cost["one"].wall / cost["two"].wall, "x", bar, True)

    def _commands(self, directory: Path) -> dict[str, list[str]]:
        out = self._out / "out.jsonl"
        return {
            "verify": ng_capture("verify", directory),
            "rebuild rollouts": ng_capture("rebuild", directory, "--to", "rollouts", "-o", out),
            "rebuild rows": ng_capture("rebuild", directory, "--to", "rows", "-o", out),
        }

    def _one_rollout(self) -> Path:
        return min(self._data["ten"].iterdir())

    def _imports_peak(self, command: Sequence[str]) -> float:
        return measured(program("imports", *imports_of(command))).peak


def _tokens(rows: Path) -> int:
    """Tokens of all training rows."""
    with open(rows, "rb") as file:
        heads = (orjson.loads(line[: line.index(b',"tokens":[')] + b"}") for line in file)
        return sum(head["spans"][-1]["end"] for head in heads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tool = HERE.parents[2] / "shared" / "tools" / "bench_data.py"
    parser.add_argument("--tools", type=Path, default=tool, metavar="FILE", help="bench_data.py (default: %(default)s)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the data there (default: a temporary directory)")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="so much data; bars are for 1")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each command (default: 3)")
    parser.add_argument("--big", action="store_true", help="also --jobs 2 and tables, on 1.6 GB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ng-capture-bench-") as temporary:
        data = DataSets(options.tools, options.data or Path(temporary) / "data", options.scale)
        bench = Bench(data, Path(temporary), options.runs, big=options.big)
        for part in (bench.start_up, bench.speed, bench.memory, bench.tables, bench.jobs):
            for row in part():
                print(row, flush=True)
    if options.big:
        print(f"Wall times are for idle cores; the load is {os.getloadavg()[1]:.1f} on {os.cpu_count()}.")
    if options.scale != 1:
        print(f"Bars are for --scale 1; this was {options.scale:g}.")


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(str(failure))
