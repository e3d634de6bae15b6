"""A process that records one chain of calls through the library.

    python -m tests.support.append_driver DIR PREFIX COUNT    # into rollout r-1, call ids PREFIX-0, PREFIX-1, ...

Prints the id of each call that it was told is recorded; durably puts it into the file `told` of DIR, too.
"""

import sys
from pathlib import Path

from ng_capture.files.writing import append_line, sync_directory
from ng_capture.records.token_record import TokenRecord, decode_record
from ng_capture.sink import TokenSink
from tests.support.forge import Forge

TOLD = "told"


def chain(prefix: str, count: int) -> Forge:
    """A rollout of calls that extend one another."""
    forge = Forge()
    call = forge.root([1, 2], [3], id=f"{prefix}-0")
    for number in range(1, count):
        call = call.then([10 + number], [20 + number], id=f"{prefix}-{number}")
    return forge


def records(forge: Forge) -> list[TokenRecord]:
    """The records of a forge as a caller would give them."""
    return [decode_record(line) for line in forge.lines()]


def main(directory: Path, prefix: str, count: int) -> None:
    forge = chain(prefix, count)
    sink = TokenSink(directory, forge.rollout_id)
    sink.begin_call(*(call.id for call in forge.calls))
    for record in records(forge):
        sink.append(record)
        append_line(directory / TOLD, record.model_call_id.encode())
        sync_directory(directory)
        print(record.model_call_id, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
