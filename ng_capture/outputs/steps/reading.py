"""The raw calls of a rollout as they stand in its files, each call id once."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import FileKind
from ng_capture.files.reading import Line
from ng_capture.outputs.raw_lines import raw_lines
from ng_capture.outputs.steps.model_call import ModelCall, model_call_of
from ng_capture.outputs.steps.said import ToolUse
from ng_capture.outputs.steps.turn_rule import TurnRule
from ng_capture.outputs.steps.turns import Asked, asked_in
from ng_capture.records.json_text import decode_json
from ng_capture.records.raw_call import RawCall, raw_call_of
from ng_capture.records.snapshot import Snapshot
from ng_capture.verdicts.health.measures import merged_call


class HowToRead(msgspec.Struct, frozen=True):
    """`payload` keeps requests and responses; `turn_rule` says how turns are counted."""

    payload: bool = False
    turn_rule: TurnRule = TurnRule.CHAIN


class ReadCall(msgspec.Struct, frozen=True, eq=False):
    """One call and where its line stands; `raw` is the same call as judging reads it."""

    call: ModelCall
    raw: RawCall
    asked: Asked | None
    file: str


def read_calls(files: RolloutFiles, snapshot: Snapshot, how: HowToRead) -> Iterator[ReadCall]:
    """Every line that is a call, in the order of the files; `snapshot` is an earlier reading, which names the others.

    What was appended since is left out: both readings tell of the same lines. Raises SurroundingsError.
    """
    documents = {defect.file for defect in snapshot.defects if defect.reason == "not_one_object_per_line"}
    index = 0
    for name in files.of_kind(FileKind.CAPTURE):
        if name.shown in documents:
            continue
        for line in raw_lines(files, name, snapshot):
            read = _read(line, index, name.shown, how)
            index += 1
            if read is not None:
                yield read


def once_each(calls: Iterable[ReadCall]) -> list[ReadCall]:
    """One call per id, in the order of their first lines; a line that names no call is a call of its own.

    The line that says most counts; tokens are the most that any line counted, tools and thinking those of all lines.
    """
    lines: dict[object, list[ReadCall]] = {}
    for number, read in enumerate(calls):
        lines.setdefault(read.raw.call_id or number, []).append(read)
    return [_merged(same) for same in lines.values()]


def _read(line: Line, index: int, file: str, how: HowToRead) -> ReadCall | None:
    try:
        value, _ = decode_json(line.data)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    raw = raw_call_of(value, line.number, line.offset)
    call = model_call_of(value, raw, index, payload=how.payload)
    return ReadCall(call, raw, asked_in(value.get("request"), how.turn_rule), file)


def _merged(lines: Sequence[ReadCall]) -> ReadCall:
    if len(lines) == 1:
        return lines[0]
    raw = merged_call([read.raw for read in lines])
    chosen = next(read for read in lines if (read.raw.line, read.raw.byte) == (raw.line, raw.byte))
    cached = raw.usage.cached_tokens
    thoughts = dict.fromkeys(read.call.reasoning_content for read in lines if read.call.reasoning_content)
    call = msgspec.structs.replace(
        chosen.call,
        **msgspec.structs.asdict(raw.usage),
        call_index=lines[0].call.call_index,
        cache_hit=None if cached is None else cached > 0,
        tool_calls=_distinct(use for read in lines for use in read.call.tool_calls),
        reasoning_content="\n".join(thoughts) or None,
    )
    return msgspec.structs.replace(chosen, call=call, raw=raw)


def _distinct(uses: Iterable[ToolUse]) -> tuple[ToolUse, ...]:
    told = {(use.call_id, use.name, bytes(use.arguments)): use for use in uses}
    return tuple(told.values())
