"""Rollouts as `health` counts them: some words about one, or what it makes of a generated capture.

rollout("4-0", reasons=("torn_tail",))                # what is not said is not known
rollout("4-0", measures=measures(raw=raw(calls=2)))
@given(run=runs())                                    # judged captures, finished rows, handed-off rollouts
@given(run=runs(RAW_ONLY))                            # raw calls where no tokens are wanted
"""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import orjson
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.health.captures import HealthTask, health_rollout
from ng_capture.outputs.health.gym_rows import METRICS_KEY, health_of_row
from ng_capture.outputs.verify import VerifyTask, verify_rollout
from ng_capture.records.rollout_row import decode_row
from ng_capture.records.usage import UNKNOWN_USAGE
from ng_capture.verdicts.health.measures import Measures, Place, RawMeasures
from ng_capture.verdicts.health.metrics import HealthMetrics
from ng_capture.verdicts.health.rollout import RolloutHealth
from ng_capture.verdicts.health.tally import Tally
from ng_capture.verdicts.judging import Judging, Policy
from tests.support.faults import Draw
from tests.support.forge import Files, Forge, Row, in_lines, write_files
from tests.support.strategies import captures

Run = list[RolloutHealth]
WITH_TOKENS = {"output": [{"type": "message", "generation_token_ids": [3]}]}
# what is drawn is judged from real files
of_runs = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def rollout(rollout_id: str = "r-1", **told: Any) -> RolloutHealth:
    """A trainable rollout, or one that is masked for the reasons given."""
    verdict = "masked" if told.get("reasons") else "trainable"
    return RolloutHealth(**{"rollout_id": rollout_id, "verdict": verdict, "reasons": (), **told})


def measures(**told: Any) -> Measures:
    """The measures of a rollout with one call, of which nothing else is said."""
    nothing: Row = {"models": {}, "prompt_lengths": (), "generation_lengths": (), "tools": None, "raw": None}
    nothing |= {"calls": 1, "zero_logprob_calls": 0, "repeated_lines": 0, "unfinished": False}
    return Measures(**{"place": Place(None, None, 0), **nothing, **told})


def raw(**told: Any) -> RawMeasures:
    """The measures of one raw call, of which nothing else is said."""
    nothing: Row = {"repeated_lines": 0, "damaged_lines": 0, "unidentified_lines": 0, "length_stopped_calls": 0}
    nothing |= {
        "calls_with_partial_usage": 0,
        "usage": UNKNOWN_USAGE,
        "latencies": (),
        "ttfts": (),
        "error_categories": {},
        "sampling": (),
    }
    return RawMeasures(**{"calls": 1, **nothing, **told})


def tally_of(rollouts: Iterable[RolloutHealth], *, judged: bool = True) -> Tally:
    """The sums over some rollouts."""
    tally = Tally(judged=judged)
    for each in rollouts:
        tally.add(each)
    return tally


def metrics_of(*rollouts: RolloutHealth, **changed: Any) -> HealthMetrics:
    """The metrics of some rollouts, with some of them changed."""
    return msgspec.structs.replace(tally_of(rollouts).metrics(), **changed)


def health_of(files: Files, row: Row | None = None, *, raw_only: bool = False, **how: Any) -> RolloutHealth:
    """The health of rollout `r-1` whose files these are, by the way that `health` goes; `how` is for `Judging`."""
    with _task(files, row, **how) as job:
        health = health_rollout(HealthTask(job, raw_only))
    assert isinstance(health, RolloutHealth)
    return health


def health_of_saved_verdict(files: Files, row: Row | None = None) -> RolloutHealth:
    """The same, by the way of `verify -f jsonl` and back."""
    with _task(files, row) as job:
        return msgspec.json.decode(msgspec.json.encode(verify_rollout(job)), type=RolloutHealth)


@contextmanager
def _task(files: Files, row: Row | None, **how: Any) -> Iterator[VerifyTask]:
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory), files)
        data = None if row is None else json.dumps(row).encode()
        yield VerifyTask("r-1", list_rollouts([directory]).get("r-1"), data, Judging(**how))


def health_of_forge(forge: Forge, exchanges: Iterable[Row] | None = None, row: Row | None = None) -> RolloutHealth:
    """The health of a healthy rollout with these raw calls beside it."""
    files = forge.files()
    if exchanges is not None:
        files["r-1.capture.jsonl"] = in_lines(map(orjson.dumps, exchanges))
    return health_of(files, row)


def row_of(health: RolloutHealth) -> Row:
    """The finished row that NeMo Gym leaves of a judged rollout."""
    masked = health.verdict == "masked"
    row = {"_ng_rollout_id": health.rollout_id, METRICS_KEY: msgspec.to_builtins(health.metrics), "mask_sample": masked}
    return row if masked else row | {"response": WITH_TOKENS}


# few values, so that calls and rollouts share them
_SAID: dict[str, st.SearchStrategy[Any]] = {
    "latency_ms": st.none() | st.sampled_from([0.0, 0.4, 12.5, 13.5, 700, 60_000.25]),
    "latency_ttft_ms": st.none() | st.sampled_from([0.0, 3.25, 8]),
    "status_code": st.sampled_from([200, 200, 200, 429, 500, None]),
    "error_category": st.none() | st.sampled_from(["cancelled", "incomplete"]),
}
_ASKED: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from(["policy-8b", "judge"]),
    "temperature": st.sampled_from([1, 1.0, 0.7]),
    "seed": st.integers(0, 3),
    "tools": st.sampled_from([[], [{"type": "function", "name": "f"}]]),
}
_USED = st.dictionaries(
    st.sampled_from(["input_tokens", "cache_read_input_tokens", "total_tokens", "prompt_tokens"]),
    st.none() | st.integers(0, 9) | st.just(2**62),
)


JUDGED = ("capture", "capture", "row", "handed off", "nothing")
RAW_ONLY = ("raw calls",)


@st.composite
def runs(draw: Draw, sources: Sequence[str] = JUDGED, max_size: int = 4) -> Run:
    """Some rollouts of a run, in any order, each told by one of these sources."""
    ids = draw(st.permutations([f"{number}-0" for number in (1, 2, 3, 10, 20, 30, 100)]))
    number = draw(st.integers(0, max_size))
    return [msgspec.structs.replace(draw(_rollouts(sources)), rollout_id=each) for each in ids[:number]]


@st.composite
def _rollouts(draw: Draw, sources: Sequence[str]) -> RolloutHealth:
    source = draw(st.sampled_from(sources))
    if source == "nothing":
        return health_of({"r-1.tokens.jsonl": b""})
    capture = draw(captures("call whole end"))
    if source == "handed off":
        return health_of(capture.files() | {"r-1.tokens.state.json": b'{"retired": true}'})
    for exchange in capture.exchanges or ():
        exchange.update({key: draw(values) for key, values in _SAID.items()})
        exchange["request"] = draw(st.none() | st.fixed_dictionaries({}, optional=_ASKED))
        exchange["response"]["usage"].update(draw(_USED))
    health = health_of(
        capture.files(), capture.row, raw_only=source == "raw calls", policy=draw(st.sampled_from(Policy))
    )
    if source != "row":
        return health
    return health_of_row("r-1", decode_row(json.dumps(row_of(health)).encode()))
