"""Raw calls of any log into a capture directory: sources -> rollouts -> records, one rollout in memory at a time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import Listing, list_rollouts
from ng_capture.files.locking import check_locks
from ng_capture.files.names import is_rollout_id
from ng_capture.files.writing import make_directory
from ng_capture.ingest.conflict import OnConflict
from ng_capture.ingest.held import Held, read_held
from ng_capture.ingest.held_turns import held_turns
from ng_capture.ingest.normalised import LogProbsKind
from ng_capture.ingest.raw import RawExchange, RolloutClaim
from ng_capture.ingest.rollout import Preparing, RolloutCall, faults_of, prepare
from ng_capture.ingest.sources.interface import Reading, TokenLine
from ng_capture.ingest.sources.recognise import Recognition
from ng_capture.ingest.sources.rollouts import file_name_claims, resolve_rollout
from ng_capture.ingest.spool import Spool
from ng_capture.ingest.store import Action, raw_files, store_rollout
from ng_capture.natural_order import natural_key
from ng_capture.records.defects import Defect
from ng_capture.records.token_entry import NOTE
from ng_capture.records.token_record import TokenRecord

_HARMLESS = frozenset({"bom"})


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asks for: `rollout_id` is that of every call, where it is given."""

    rollout_id: str | None = None
    on_conflict: OnConflict = OnConflict.FAIL
    delta: bool = False
    log_probs_kind: LogProbsKind | None = None


class IngestedCall(msgspec.Struct, frozen=True):
    """A call and what became of it; `how` its parent was found, lengths in tokens, None where they are not known."""

    call_id: str
    file: str
    line: int
    action: Action
    trainable: bool
    parent_call_id: str | None
    parent_resolution: str
    parent_resolution_reason: str
    how: str | None
    prompt_tokens: int | None
    generated_tokens: int | None
    origin: str | None
    log_probs_kind: str | None
    problems: tuple[str, ...]
    missing: tuple[str, ...]
    warnings: tuple[str, ...]


class IngestedRollout(msgspec.Struct, frozen=True):
    """A rollout and what became of its calls. `defects` tell of faults of calls, and of what the store refused."""

    rollout_id: str
    calls: tuple[IngestedCall, ...]
    defects: tuple[Defect, ...]


class Unwritten(msgspec.Struct, frozen=True):
    """A rollout that the surroundings did not let be read or written; a second run finishes what was begun."""

    rollout_id: str
    message: str


class Ingestion:
    """One run. Everything is read before anything is written; `defects` then tell what was wrong with the sources.

    Raises SurroundingsError for sources that cannot be read, and for a directory that cannot be written.
    """

    def __init__(self, recognition: Recognition, directory: Path, wanted: Wanted) -> None:
        self._directory = directory
        self._wanted = wanted
        self._spool = Spool()
        self._files_of: dict[str, set[str]] = {}
        self._faults: dict[str, list[Defect]] = {}
        self._listing = list_rollouts([str(directory)]) if directory.is_dir() else Listing()
        self.unwritten: list[SurroundingsError] = []
        self.defects: list[Defect] = list(recognition.refused)
        for log in recognition.logs:
            for reading in log.read():
                self._take(reading)
        every = Counter(file for files in self._files_of.values() for file in files)
        self._shared = frozenset(file for file in self._faults if every[file] > 1)
        self._refuse_ids_of_other_case()

    @property
    def rollout_ids(self) -> list[str]:
        return sorted(self._files_of, key=natural_key)

    def write(self) -> Iterator[IngestedRollout | Unwritten]:
        """Bring every rollout into the directory, which is made where it is not there; none stops the rest."""
        if not self._files_of:
            return
        check_locks(self._directory)
        make_directory(self._directory)
        for rollout_id in self.rollout_ids:
            try:
                yield self._write(rollout_id)
            except SurroundingsError as error:
                yield Unwritten(rollout_id, error.message)

    def _take(self, reading: Reading) -> None:
        if isinstance(reading, Defect):
            self.defects.append(reading)
            if reading.reason not in _HARMLESS and reading.file is not None:
                self._faults.setdefault(reading.file, []).append(reading)
                self._note_named_rollout(reading.file)
            return
        place = _place(reading)
        chosen = self._wanted.rollout_id
        claims = [*reading.claims, *([RolloutClaim("option", chosen)] if chosen is not None else [])]
        rollout_id = resolve_rollout(claims)
        if isinstance(rollout_id, Defect):
            self.defects.append(rollout_id.at(file=place.file, line=place.line, byte=place.byte, call=place.call))
            return
        file = place.file or ""
        self._files_of.setdefault(rollout_id, set()).add(file)
        try:
            self._spool.add(rollout_id, reading)
        except RecursionError:
            fault = place.at(reason="invalid_record", detail="nested too deeply")
            self.defects.append(fault)
            self._faults.setdefault(file, []).append(fault)

    def _note_named_rollout(self, file: str) -> None:
        """A damaged file that is named after a rollout is of that rollout, though no call of it may be readable."""
        for claim in file_name_claims(Path(file).name):
            rollout_id = self._wanted.rollout_id or claim.rollout_id
            if is_rollout_id(rollout_id):
                self._files_of.setdefault(rollout_id, set()).add(file)

    def _refuse_ids_of_other_case(self) -> None:
        """Two names that differ in nothing but case are one file on some disks (case 50 of the corpus of bugs)."""
        known = {rollout_id.lower(): rollout_id for rollout_id in self._listing.ids}
        for rollout_id in self.rollout_ids:
            first = known.setdefault(rollout_id.lower(), rollout_id)
            if first != rollout_id:
                del self._files_of[rollout_id]
                self.defects.append(Defect(reason="case_collision", expected=first, found=rollout_id))

    def _write(self, rollout_id: str) -> IngestedRollout:
        files = self._listing.get(rollout_id) if rollout_id in self._listing else None
        held = read_held(files)
        of_store = [self._directory / str(name) for name in raw_files(rollout_id)]
        how = Preparing(
            self._wanted.log_probs_kind,
            self._wanted.delta,
            frozenset(file for file in self._files_of[rollout_id] if _is_one_of(of_store, file)),
        )
        prepared = prepare(
            rollout_id, self._spool.of(rollout_id), held, how, lambda: held_turns(files, held.calls.keys())
        )
        faults = [fault for file in sorted(self._files_of[rollout_id]) for fault in self._faults.get(file, ())]
        # of several rollouts in one file nobody knows which one lost the call: all of them may have
        lost = [fault.call for fault in faults if fault.call is not None and fault.file not in self._shared]
        marked = any(fault.call is None or fault.file in self._shared for fault in faults)
        stored = store_rollout(self._directory, prepared, held, lost, marked, self._wanted.on_conflict)
        calls = tuple(_told(call, action, held) for call, action in stored.calls)
        of_calls = dict.fromkeys(faults_of([call for call, _ in stored.calls]))
        return IngestedRollout(rollout_id, calls, (*of_calls, *stored.faults))


def _place(reading: RawExchange | TokenLine) -> Defect:
    if isinstance(reading, RawExchange):
        return Defect(reason="", file=reading.file, line=reading.line, byte=reading.byte, call=reading.call_id)
    return reading.entry.locate(Defect(reason=""))


def _is_one_of(paths: Iterable[Path], file: str) -> bool:
    return any(path.exists() and Path(file).exists() and path.samefile(file) for path in paths)


def _told(call: RolloutCall, action: Action, held: Held) -> IngestedCall:
    candidate, record = call.candidate, call.record
    note = _note(record.extras) if record is not None else {}
    resolution: str = call.parent.resolution
    reason: str = call.parent.reason
    parent, how = call.parent.parent_call_id, call.how
    if action == "there":
        # its record stays as it is, whatever link it would get today
        there = held.calls[candidate.call_id].record
        parent, reason = there.parent_call_id, there.parent_resolution_reason
        resolution = there.parent_resolution or ("unresolved" if parent is None else "resolved")
        how = None if parent is None else "recorded"
    return IngestedCall(
        call_id=candidate.call_id,
        file=candidate.file,
        line=candidate.line,
        action=action,
        trainable=record is not None and not candidate.problems,
        parent_call_id=parent,
        parent_resolution=resolution,
        parent_resolution_reason=reason,
        how=how,
        prompt_tokens=None if record is None else _prompt_tokens(record),
        generated_tokens=None if record is None else len(record.generation_token_ids),
        origin=note.get("origin"),
        log_probs_kind=note.get("log_probs_kind"),
        problems=candidate.problems,
        missing=candidate.missing,
        warnings=candidate.warnings,
    )


def _prompt_tokens(record: TokenRecord) -> int | None:
    if not record.prompt_is_delta:
        return len(record.prompt_token_ids)
    return None if record.cum_len is None else record.cum_len - len(record.generation_token_ids)


def _note(extras: Mapping[str, object]) -> Mapping[str, str | None]:
    note = extras.get(NOTE)
    told = note if isinstance(note, dict) else {}
    return {key: value for key in ("origin", "log_probs_kind") if isinstance(value := told.get(key), str)}
