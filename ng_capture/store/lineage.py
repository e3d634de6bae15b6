"""What the records of one rollout on the disk say about the parent of a request (capture-files.md 3)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ng_capture.errors import RolloutDamaged, SurroundingsError
from ng_capture.files.names import FileKind
from ng_capture.records.lineage import Lineage, Parent
from ng_capture.records.token_entry import Unreadable
from ng_capture.records.token_record import TokenRecord, decode_record


class FoundParent(msgspec.Struct, frozen=True, eq=False):
    """The link of a request, and the whole sequence of its parent: prompt and generation, empty where there is none."""

    link: Parent
    token_ids: Sequence[int] = ()


class TokenLineage:
    """Finds parents among the records of a rollout; takes no lock, and reads what was added since it last looked.

    Holds where each record stands, not its tokens.
    """

    def __init__(self, directory: str | Path, rollout_id: str) -> None:
        self._path = Path(directory, f"{rollout_id}.{FileKind.TOKENS}")
        self._lineage = Lineage()
        self._places: dict[str, _Place] = {}
        self._end = 0

    def resolve(self, request_items: Sequence[object]) -> FoundParent:
        """The parent of a request with these items (`fingerprint.request_items`).

        Raises RolloutDamaged where a record cannot be read or a delta leads to no full record, SurroundingsError.
        """
        self._look()
        link = self._lineage.parent_of(request_items)
        return FoundParent(link, () if link.parent_call_id is None else self._sequence(link.parent_call_id))

    def _look(self) -> None:
        data = self._read(_Place(self._end, -1)) if self._path.exists() else b""
        # a last line without its line break is being written
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            if line.strip():
                record = self._decoded(line)
                self._lineage.add(record)
                self._places.setdefault(record.model_call_id, _Place(self._end, len(line)))
            self._end += len(line)

    def _sequence(self, call_id: str) -> list[int]:
        parts: list[Sequence[int]] = []
        left = dict(self._places)
        here: str | None = call_id
        while here is not None:
            place = left.pop(here, None)
            if place is None:
                raise RolloutDamaged(f"{self._path}: call {call_id} is a delta that leads to no full record")
            record = self._decoded(self._read(place))
            parts += [record.generation_token_ids, record.prompt_token_ids]
            here = record.parent_call_id if record.prompt_is_delta else None
        return [token for part in reversed(parts) for token in part]

    def _read(self, place: "_Place") -> bytes:
        try:
            with open(self._path, "rb") as file:
                file.seek(place.start)
                return file.read(place.size)
        except OSError as error:
            raise SurroundingsError(f"{self._path}: cannot be read: {error.strerror}") from error

    def _decoded(self, line: bytes) -> TokenRecord:
        try:
            return decode_record(line.strip())
        except Unreadable as error:
            raise RolloutDamaged(f"{self._path}: {error.defect.reason}") from error


class _Place(msgspec.Struct, frozen=True):
    """Bytes of the file; a size of -1 is all that follow."""

    start: int
    size: int
