"""The conversations of the calls that the store holds, as its raw calls tell them."""

from collections.abc import Collection, Iterator

from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import FileKind
from ng_capture.files.reading import CaptureFile
from ng_capture.ingest.exchange import Exchange, decode_exchange


def held_turns(files: RolloutFiles | None, calls: Collection[str]) -> Iterator[Exchange]:
    """The exchange of each of these calls that has one; what cannot be read says nothing here.

    Raises SurroundingsError for an unreadable file.
    """
    if files is None:
        return
    for name in files.of_kind(FileKind.CAPTURE):
        with CaptureFile(files.path(name), name.compression) as file:
            for line in file.lines():
                try:
                    exchange = decode_exchange(line.data, line.number)
                except ValueError:
                    continue
                if exchange is not None and exchange.call_id in calls and exchange.asked:
                    yield exchange
