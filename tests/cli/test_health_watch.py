"""`ng-capture health --watch` beside a live run."""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import COMMAND, run
from tests.support.forge import write_files, write_rows
from tests.support.runs import broken, healthy, metrics, words_of, write_lost

PATIENCE = 20.0
# a screen ends with the time and the interval
END = re.compile(r"  [0-9]{2}:[0-9]{2}:[0-9]{2}, every 0.1 s\r?\n")


class Watch:
    """A running `health --watch 0.1`, and what it has drawn."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self.process = process
        self._output = output
        self._text = ""

    def until(self, wanted: str, absent: str = "\0") -> str:
        """The first screen from now on with these words and without those; fails where none comes."""
        deadline, last = time.monotonic() + PATIENCE, ""
        while time.monotonic() < deadline:
            if select.select([self._output], [], [], 0.1)[0]:
                self._text += os.read(self._output, 65536).decode()
            while (end := END.search(self._text)) is not None:
                last, self._text = self._text[: end.end()], self._text[end.end() :]
                words = " ".join(words_of(last))
                if wanted in words and absent not in words:
                    return last
        raise AssertionError(f"never seen {wanted!r} without {absent!r}; the last screen was: {last}{self._text}")

    def interrupt(self) -> tuple[int, str]:
        """End it as a user does; the exit code and what stands on standard error."""
        self.process.send_signal(signal.SIGINT)
        _, told = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, told.decode()


@contextlib.contextmanager
def watching(directory: Path, *options: str, terminal: bool = False) -> Iterator[Watch]:
    """Watch a directory; on a terminal or through a pipe."""
    reading, writing = pty.openpty() if terminal else os.pipe()
    line = [COMMAND, "health", str(directory), "--watch", "0.1", *options]
    process = subprocess.Popen(line, stdout=writing, stderr=subprocess.PIPE, env={**os.environ, "COLUMNS": "120"})
    os.close(writing)
    try:
        yield Watch(process, reading)
    finally:
        process.kill()
        process.communicate()
        os.close(reading)


def test_a_line_that_is_still_being_written_is_not_torn_and_counts_when_it_is_whole(tmp_path: Path) -> None:
    files = healthy("0-0").files(state=False, intents=False)
    text = files["0-0.tokens.jsonl"]
    write_files(tmp_path, {"0-0.tokens.jsonl": text[:-40]})
    assert metrics(tmp_path)["reasons"] == {"torn_tail": 1}
    with watching(tmp_path) as watch:
        screen = watch.until("1 rollout 1 call trainable 1 100.0 %")
        assert "torn_tail" not in screen and "running" not in screen
        with open(tmp_path / "0-0.tokens.jsonl", "ab") as file:
            file.write(text[-40:])
        watch.until("1 rollout 2 calls trainable 1 100.0 %")


def test_raw_lines_that_are_still_being_written_are_not_damaged(tmp_path: Path) -> None:
    files = healthy("0-0").files(raw=True)
    files["0-0.capture.jsonl"] = files["0-0.capture.jsonl"][:-40]
    write_files(tmp_path, files)
    assert metrics(tmp_path, "--raw-only")["damaged_lines"] == 1
    with watching(tmp_path, "--raw-only") as watch:
        assert "damaged" not in watch.until("raw calls 1,")


def test_new_rollouts_appear_and_old_ones_go(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path)
    with watching(tmp_path) as watch:
        watch.until("1 rollout 2 calls")
        broken("0-1").write(tmp_path)
        watch.until("why masked rollouts for example prefix_mismatch 1 0-1")
        for path in tmp_path.glob("0-1.*"):
            path.unlink()
        watch.until("1 rollout 2 calls")


def test_an_announced_call_runs_and_then_it_is_there(tmp_path: Path) -> None:
    write_lost(tmp_path, "0-0")
    with watching(tmp_path) as watch:
        watch.until("masked 1 100.0 % ##################################### 1 running")
        healthy("0-0").write(tmp_path)
        watch.until("1 rollout 2 calls trainable 1 100.0 %", absent="running")


def test_finished_rows_are_read_again_too(tmp_path: Path) -> None:
    forge = healthy("0-0")
    forge.write(tmp_path / "run")
    write_rows(tmp_path / "rows.jsonl", [])
    with watching(tmp_path / "run", "--rollouts", str(tmp_path / "rows.jsonl")) as watch:
        watch.until("scored call by none 1")
        write_rows(tmp_path / "rows.jsonl", [forge.row(forge.calls[-1])])
        watch.until("scored call by response_id 1")


def test_gates_and_breakdown_are_drawn_and_end_nothing(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path)
    with watching(tmp_path, "--max", "masked=0", "--by", "task") as watch:
        assert "by task" in watch.until("gates ok masked 0 at most 0")
        broken("1-0").write(tmp_path)
        watch.until("gates FAIL masked 1 at most 0 1-0")
        assert watch.process.poll() is None


@pytest.mark.parametrize("terminal", [False, True])
def test_an_interrupt_ends_it_with_130_and_without_a_traceback(tmp_path: Path, terminal: bool) -> None:
    healthy("0-0").write(tmp_path)
    with watching(tmp_path, terminal=terminal) as watch:
        watch.until("1 rollout 2 calls")
        assert watch.interrupt() == (130, "ng-capture: interrupted, nothing half written\n")


def test_the_screen_is_drawn_anew_on_a_terminal_and_appended_to_a_pipe(tmp_path: Path) -> None:
    broken("0-0").write(tmp_path)
    with watching(tmp_path, terminal=True) as watch:
        screen = watch.until("1 rollout 2 calls")
        assert screen.startswith("\x1b[H\x1b[2J") and "\x1b[1;31mFAIL" in screen
    with watching(tmp_path) as watch:
        assert "\x1b" not in watch.until("1 rollout 2 calls")


def test_a_directory_that_goes_away_may_come_back(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path / "run")
    with watching(tmp_path / "run") as watch:
        watch.until("1 rollout 2 calls")
        shutil.rmtree(tmp_path / "run")
        watch.until(f"{tmp_path / 'run'}: no such file or directory")
        healthy("0-1").write(tmp_path / "run")
        watch.until("1 rollout 2 calls trainable 1")


def test_nothing_is_watched_that_is_not_there_from_the_start(tmp_path: Path) -> None:
    done = run("health", tmp_path / "nowhere", "--watch", "0.1")
    assert (done.code, done.out) == (2, "") and "nowhere: no such file or directory" in done.err
