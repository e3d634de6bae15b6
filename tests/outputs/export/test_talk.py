"""What each call asked and answered, read from its raw calls."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.export.text.talk import Talk, read_talks
from ng_capture.store.snapshot import read_snapshot
from tests.support.forge import Forge, in_lines
from tests.support.raw_calls import chat_call, says, user

ASKED = [user("x")]
ANSWERED = chat_call("a", ASKED, says("yes"))
UNANSWERED = chat_call("a", ASKED, None)
OTHERWISE = chat_call("a", ASKED, says("no"))


def talk(
    directory: Path, *lines: dict[str, Any] | bytes, later: Sequence[dict[str, Any]] = (), ending: str = ""
) -> Talk:
    """What call `a` is told to be by these lines, and by some that came after its rollout was read."""
    forge = Forge()
    forge.root([1], [2], id="a")
    forge.write(directory)
    path = directory / f"r-1.capture.jsonl{ending}"
    data = in_lines(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    path.write_bytes(gzip.compress(data) if ending else data)
    files = list_rollouts([str(directory)]).get("r-1")
    snapshot = read_snapshot(files)
    with path.open("ab") as file:
        file.write(in_lines(json.dumps(line).encode() for line in later))
    return read_talks(files, snapshot, {"a"}, {"a"})["a"]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_the_text_of_a_call_is_that_of_its_raw_call(tmp_path: Path, ending: str) -> None:
    told = talk(tmp_path, b"\xef\xbb\xbf" + json.dumps(ANSWERED).encode(), ending=ending)
    assert told.answer is not None
    assert (told.asked, told.answer.text, told.fault) == (1, "yes", None)
    assert [turn.text for turn in told.history] == ["x"]


def test_what_was_appended_since_the_rollout_was_judged_is_left_out(tmp_path: Path) -> None:
    assert talk(tmp_path, ANSWERED, later=[OTHERWISE]) == talk(tmp_path, ANSWERED)


@pytest.mark.parametrize("damage", [b"{torn", b"[]", b"", b'{"model_call_id": 7}', b"[" * 100_000])
def test_lines_that_tell_nothing_are_passed_over(tmp_path: Path, damage: bytes) -> None:
    assert talk(tmp_path, damage, ANSWERED, damage) == talk(tmp_path, ANSWERED)


@pytest.mark.parametrize("lines", [(ANSWERED, UNANSWERED), (UNANSWERED, ANSWERED), (ANSWERED, ANSWERED)])
def test_of_two_lines_of_one_call_the_answered_one_counts(tmp_path: Path, lines: tuple[dict[str, Any], ...]) -> None:
    assert talk(tmp_path, *lines) == talk(tmp_path, ANSWERED)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ((UNANSWERED,), "its raw call has no answer"),
        ((chat_call("a", [], says("yes")),), "its request has no messages"),
        ((chat_call("a", [*ASKED, says("It is")], says("yes")),), "its request begins the answer"),
        ((ANSWERED, OTHERWISE), "its raw calls contradict each other"),
    ],
)
def test_a_call_whose_text_is_not_the_whole_conversation_says_why(
    tmp_path: Path, lines: tuple[dict[str, Any], ...], fault: str
) -> None:
    assert talk(tmp_path, *lines).fault == fault
