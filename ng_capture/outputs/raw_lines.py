"""The lines of raw calls that an earlier reading of their rollout saw, too."""

from collections.abc import Iterator

from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import CaptureName, Compression
from ng_capture.files.reading import CaptureFile, Line
from ng_capture.records.json_text import BOM
from ng_capture.records.snapshot import Snapshot


def raw_lines(files: RolloutFiles, name: CaptureName, snapshot: Snapshot) -> Iterator[Line]:
    """The lines of a file that are not blank, without its byte order mark; raises SurroundingsError.

    What was appended since `snapshot` was read is left out: both readings tell of the same lines.
    """
    sizes = {file.name: file.size for file in snapshot.files}
    size = sizes.get(name.shown, 0) if name.compression is Compression.NONE else None
    with CaptureFile(files.path(name), name.compression) as file:
        for line in file.lines():
            if size is not None and line.offset + len(line.data) > size:
                break
            data = line.data.removeprefix(BOM) if line.number == 1 else line.data
            if data and not data.isspace():
                yield line._replace(data=data)
