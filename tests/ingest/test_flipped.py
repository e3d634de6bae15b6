"""Logs whose bytes were changed: nothing is raised, and no token comes of it that the log does not hold."""

import contextlib
import re
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.errors import UsageError
from ng_capture.files.listing import list_rollouts
from ng_capture.ingest.ingest import Ingestion, Wanted
from ng_capture.ingest.sources.recognise import recognise
from ng_capture.outputs.verify import VerifyTask, judge_task
from ng_capture.verdicts.judging import Judging, Policy
from tests.support.golden import sources
from tests.support.judging import rows_of

LOGS = {name: data for name, data in sources().items() if name.endswith((".jsonl", ".har"))}
_NUMBER = re.compile(rb"[0-9]+")


@st.composite
def changed(draw: st.DrawFn) -> tuple[str, bytes]:
    """A log with some of its bytes replaced, left out or doubled."""
    name = draw(st.sampled_from(sorted(LOGS)))
    data = bytearray(LOGS[name])
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data) - 1))
        end = min(len(data), place + draw(st.integers(0, 12)))
        data[place:end] = draw(st.sampled_from([b"", b"\n", b'"', b",", b"]", b"0", b"-1", bytes(data[place:end]) * 2]))
    return name, bytes(data)


@settings(max_examples=60, deadline=None)
@given(changed())
def test_a_changed_log_is_read_without_an_error_and_trains_nothing_that_it_does_not_hold(
    log: tuple[str, bytes],
) -> None:
    name, data = log
    with tempfile.TemporaryDirectory() as directory:
        source, store = Path(directory) / name, Path(directory) / "store"
        source.write_bytes(data)
        with contextlib.suppress(UsageError):
            list(Ingestion(recognise([str(source)]), store, Wanted(rollout_id="r-1")).write())
        held = {int(number) for number in _NUMBER.findall(data)}
        for files in list_rollouts([str(store)]) if store.exists() else ():
            judgement = judge_task(VerifyTask(files.rollout_id, files, None, Judging(Policy.ALL)))
            for row in rows_of(judgement):
                assert set(row["tokens"]) <= held
