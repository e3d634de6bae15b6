"""NeMo Gym's `<rollout id>.tokens.jsonl`: records already, with their links (capture-files.md 2)."""

from collections.abc import Collection, Iterator, Sequence

from ng_capture.files.names import FileKind, parse_name
from ng_capture.files.reading import Line
from ng_capture.ingest.raw import RolloutClaim
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading, TokenLine, one_by_one
from ng_capture.ingest.sources.lines import each_line
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import file_name_claims
from ng_capture.records.defects import Defect
from ng_capture.records.lifecycle import decode_call_lines, decode_state
from ng_capture.records.token_entry import decode_entry


def _recognises(head: Head) -> bool:
    name = parse_name(head.name)
    if name is not None:
        return name.kind is FileKind.TOKENS
    return head.has("model_call_id", "prompt_token_ids", "generation_token_ids")


def _read(file: SourceFile) -> Iterator[Reading]:
    of_file = file_name_claims(file.file_name)
    seen = set()
    for reading in each_line(file, lambda line: _decoded(file, of_file, line)):
        yield reading
        if isinstance(reading, TokenLine):
            seen.add(reading.entry.call_id)
            if not reading.terminated:
                yield Defect(reason="missing_newline", file=file.name, line=reading.entry.line, byte=reading.entry.byte)
    yield from _lost(file, seen)


def _lost(file: SourceFile, seen: Collection[str]) -> Iterator[Defect]:
    """What the files beside the records say of calls that have none (capture-files.md 1.5 and 1.6)."""
    data = file.read_beside(FileKind.STATE)
    settled = set(seen)
    marked = file.has_beside(FileKind.INCOMPLETE)
    try:
        state = None if data is None else decode_state(data)
    except ValueError:
        yield Defect(reason="state_unreadable", file=file.name)
        state = None
    if state is not None:
        settled |= {refusal.model_call_id for refusal in state.refusals}
        marked = marked or state.incomplete
    for line in decode_call_lines(file.read_beside(FileKind.INTENTS) or b""):
        if line.call_id and line.call_id not in settled:
            detail = "was announced but has no record"
            yield Defect(reason="capture_incomplete", file=file.name, call=line.call_id, detail=detail)
    if marked:
        yield Defect(reason="capture_incomplete", file=file.name, detail="the rollout is marked so")


def _decoded(file: SourceFile, of_file: Sequence[RolloutClaim], line: Line) -> TokenLine:
    entry = decode_entry(line.data, file=file.name, line=line.number, byte=line.offset)
    return TokenLine(entry, (*of_file, RolloutClaim("field", entry.fields.rollout_id)), line.terminated)


GYM_TOKENS = LogFormat("gym-tokens", _recognises, one_by_one(_read))
