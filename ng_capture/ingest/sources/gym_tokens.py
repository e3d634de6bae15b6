"""NeMo Gym's `<rollout id>.tokens.jsonl`: records already, with their links (capture-files.md 2)."""

from collections.abc import Iterator, Sequence

from ng_capture.files.names import FileKind, parse_name
from ng_capture.files.reading import Line
from ng_capture.ingest.raw import RolloutClaim
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading, TokenLine, one_by_one
from ng_capture.ingest.sources.lines import each_line
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import file_name_claims
from ng_capture.records.defects import Defect
from ng_capture.records.token_entry import decode_entry


def _recognises(head: Head) -> bool:
    name = parse_name(head.name)
    if name is not None:
        return name.kind is FileKind.TOKENS
    return head.has("model_call_id", "prompt_token_ids", "generation_token_ids")


def _read(file: SourceFile) -> Iterator[Reading]:
    of_file = file_name_claims(file.file_name)
    for reading in each_line(file, lambda line: _decoded(file, of_file, line)):
        yield reading
        if isinstance(reading, TokenLine) and not reading.terminated:
            yield reading.entry.locate(Defect(reason="missing_newline"))
    if file.has_beside(FileKind.INCOMPLETE):
        yield Defect(reason="capture_incomplete", file=file.name, detail="the rollout is marked incomplete")


def _decoded(file: SourceFile, of_file: Sequence[RolloutClaim], line: Line) -> TokenLine:
    entry = decode_entry(line.data, file=file.name, line=line.number, byte=line.offset)
    return TokenLine(entry, (*of_file, RolloutClaim("field", entry.fields.rollout_id)), line.terminated)


GYM_TOKENS = LogFormat("gym-tokens", _recognises, one_by_one(_read))
