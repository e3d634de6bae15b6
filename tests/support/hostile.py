"""Bring hostile logs into a store, in this process, and hold what was written against what they hold.

survive({"r-1.capture.jsonl": line})       # any exception but a refusal fails; gives the store's trained calls
"""

import contextlib
import gzip
import io
import json
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import zstandard

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.listing import list_rollouts
from ng_capture.ingest.ingest import Ingestion, Wanted
from ng_capture.ingest.sources.recognise import recognise
from ng_capture.outputs.verify import VerifyTask, judge_task
from ng_capture.records.token_record import decode_record
from ng_capture.verdicts.judge import Judging
from ng_capture.verdicts.policies import Policy
from ng_capture_cli.ingest_report import Report
from ng_capture_cli.options import Color
from ng_capture_cli.summary import finding_line
from ng_capture_cli.terminal import Colors
from tests.support.forge import Files, write_files
from tests.support.ingest_logs import contents
from tests.support.judging import rows_of

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


class Trained(NamedTuple):
    """What a trainer would learn of one call."""

    ids: list[int]
    log_probs: list[float]


def survive(files: Files, name: str | None = None, **wanted: Any) -> list[Trained]:
    """Ingest, judge and ingest again; every record is readable, no second run adds anything."""
    with tempfile.TemporaryDirectory() as place:
        logs, store = Path(place, "logs"), Path(place, "store")
        logs.mkdir()
        write_files(logs, files)
        try:
            ingest(logs, store, name, **wanted)
        except (UsageError, SurroundingsError):
            return []
        before = contents(store)
        for file, data in before.items():
            if file.endswith(".tokens.jsonl"):
                for line in data.splitlines():
                    decode_record(line)
        ingest(logs, store, name, **wanted)
        assert contents(store) == before
        return list(trained(store)) if store.exists() else []


def ingest(logs: Path, store: Path, name: str | None = None, **wanted: Any) -> None:
    """One run, with everything that it would print."""
    ingestion = Ingestion(recognise([str(logs)], name), store, Wanted(**wanted))
    report = Report(ingestion.defects)
    for rollout in report.told(ingestion.write()):
        msgspec.json.encode(rollout)
        for finding in rollout.findings:
            finding_line(rollout.rollout_id or "ingest", finding, Colors(Color.NEVER, terminal=False)).encode()
    msgspec.json.encode(report.summary)
    assert report.unwritten == []


def trained(store: Path) -> Iterator[Trained]:
    """The generated tokens that carry loss, of every policy's rows."""
    listing = list_rollouts([str(store)])
    for rollout_id in listing.ids:
        for policy in (Policy.TERMINAL, Policy.ALL):
            judgement = judge_task(VerifyTask(rollout_id, listing.get(rollout_id), None, Judging(policy)))
            for row in rows_of(judgement):
                places = [at for at, loss in enumerate(row["loss_mask"]) if loss]
                yield Trained([row["tokens"][at] for at in places], [row["logprobs"][at] for at in places])


def numbers_in(data: bytes) -> list[float]:
    """Every number of a text in its order, inside of strings too."""
    return [float(each) for each in _NUMBER.findall(plain(data))]


def plain(data: bytes) -> bytes:
    """The text of a log, as far as it can be decompressed."""
    if data.startswith(b"\x1f\x8b"):
        return _as_far(gzip.GzipFile(fileobj=io.BytesIO(data)).read1)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        return _as_far(lambda: reader.read(1))
    return data


def _as_far(read: Callable[[], bytes]) -> bytes:
    text = b""
    with contextlib.suppress(OSError, EOFError, zlib.error, zstandard.ZstdError):
        while piece := read():
            text += piece
    return text


def held(found: Iterable[Trained], numbers: Sequence[float]) -> bool:
    """True if what is trained of every call stands among the numbers, in their order."""
    return all(_in_order(each.ids, numbers) and _in_order(each.log_probs, numbers) for each in found)


def _in_order(wanted: Sequence[float], numbers: Iterable[float]) -> bool:
    rest = iter(numbers)
    return all(any(number == each for number in rest) for each in wanted)


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()
