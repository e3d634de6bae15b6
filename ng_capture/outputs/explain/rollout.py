"""One rollout with everything that can be shown of it: judged, with its raw calls and its messages."""

from collections.abc import Mapping

import msgspec

from ng_capture.chains.calls import Call
from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import FileKind
from ng_capture.files.reading import CaptureFile
from ng_capture.ingest.exchange import Exchange, decode_exchange
from ng_capture.ingest.messages import Message, answer_message
from ng_capture.ingest.raw_records import with_raw_records
from ng_capture.outputs.rows_file import decoded
from ng_capture.outputs.verify import VerifyTask
from ng_capture.records.json_text import BOM
from ng_capture.records.rollout_row import NO_EVIDENCE, RolloutRow
from ng_capture.records.snapshot import Snapshot
from ng_capture.store.snapshot import read_snapshot
from ng_capture.verdicts.judge import Judgement, judge


class ShownRollout(msgspec.Struct, frozen=True, eq=False):
    """A judged rollout; `raw_only` where its records were made of raw calls, which nothing but looking does yet."""

    judgement: Judgement
    row: RolloutRow | None
    exchanges: Mapping[str, Exchange]
    raw_only: bool

    def answer(self, call: Call) -> Message | None:
        """What a call answered: by its raw call, else by the items of its record."""
        exchange = self.exchanges.get(call.id)
        if exchange is not None and exchange.answer is not None:
            return exchange.answer
        return answer_message({"output": list(call.fields.output_items)}) if call.fields.output_items else None


def read_rollout(task: VerifyTask, *, raw_calls: bool = True) -> ShownRollout:
    """Read and judge one rollout, with its raw calls where they are wanted or there are no records.

    Raises SurroundingsError.
    """
    snapshot = Snapshot(rollout_id=task.rollout_id)
    exchanges: list[Exchange] = []
    if task.files is not None:
        snapshot = read_snapshot(task.files)
        exchanges = _exchanges(task.files) if raw_calls or not snapshot.entries else []
    row = decoded(task.row)
    whole = with_raw_records(snapshot, exchanges)
    judgement = judge(whole, row.evidence if row is not None else NO_EVIDENCE, task.judging)
    return ShownRollout(judgement, row, {each.call_id: each for each in exchanges}, raw_only=whole is not snapshot)


def _exchanges(files: RolloutFiles) -> list[Exchange]:
    """The raw calls that can be read; the snapshot names the others."""
    found = []
    for name in files.of_kind(FileKind.CAPTURE):
        with CaptureFile(files.path(name), name.compression) as file:
            for line in file.lines():
                data = line.data.removeprefix(BOM) if line.number == 1 else line.data
                try:
                    exchange = decode_exchange(data, line.number) if data.strip() else None
                except ValueError:
                    continue
                if exchange is not None:
                    found.append(exchange)
    return found
