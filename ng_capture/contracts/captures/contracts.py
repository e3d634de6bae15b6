"""The contracts around captures: what lies in a capture directory, its records alone, tables, the evaluation view."""

from collections.abc import Iterator

from ng_capture.contracts.captures.episodes import READ_LOSSES, read
from ng_capture.contracts.captures.eval_writer import EVALUATION_WRITER
from ng_capture.contracts.captures.gathering import RECORDS, is_token_record
from ng_capture.contracts.captures.table_writer import TABLE_WRITER
from ng_capture.contracts.captures.token_records import FACTS
from ng_capture.contracts.captures.tokens_writer import TOKENS_WRITER
from ng_capture.contracts.captures.validation import validate
from ng_capture.contracts.interface import Contract, Feature, Head, Options, Read, Reader, Refused
from ng_capture.contracts.sources import Source
from ng_capture.files.names import FileKind, parse_name

_NEVER = frozenset({Feature.NO_MODEL, Feature.REWARD, Feature.ROW})
_EXCHANGES = frozenset(Feature) - _NEVER
_RECORDS = _EXCHANGES - {Feature.DEVELOPER, Feature.TOOLS, Feature.REQUEST, Feature.COPIED}
_KINDS = (FileKind.CAPTURE, FileKind.TOKENS)


def _is_capture(head: Head) -> bool:
    """A folder with captures, a file that is named as one, or lines of calls with their payload."""
    if head.is_folder:
        return isinstance(head.value, list) and any(map(_names_a_capture, head.value))
    if _names_a_capture(head.file_name):
        return True
    return head.has("dialect") and (head.has("request") or head.has("response")) and not is_token_record(head.value)


def _names_a_capture(name: object) -> bool:
    parsed = parse_name(name) if isinstance(name, str) else None
    return parsed is not None and parsed.kind in _KINDS


def _is_table(head: Head) -> bool:
    return head.has("rollout_id", FACTS) or head.has("rollout_id", "model_call_id", "output_items", "tokens_in")


def _read_records(source: Source, options: Options) -> Iterator[Read | Refused]:
    return read(source, options, "tokens", RECORDS)


def _read_table(source: Source, options: Options) -> Iterator[Read | Refused]:
    return read(source, options, "jsonl")


CAPTURE = Contract(
    "capture",
    "raw exchanges and token records in a capture directory",
    "what was asked, sampled and counted at the model server",
    "rollout id, then model_call_id",
    Reader(_is_capture, read, _EXCHANGES, READ_LOSSES, validate, folders=True),
)
JSONL = Contract(
    "jsonl",
    "a table: one line per call",
    "nothing; a copy of records and facts of calls",
    "rollout_id, then model_call_id",
    Reader(_is_table, _read_table, _EXCHANGES, READ_LOSSES, validate),
    TABLE_WRITER,
)
TOKENS = Contract(
    "tokens",
    "token records (`.tokens.jsonl`) alone",
    "exact ids and log probabilities of model calls",
    "rollout id, then model_call_id",
    Reader(lambda head: is_token_record(head.value), _read_records, _RECORDS, READ_LOSSES, validate, folders=True),
    TOKENS_WRITER,
)
EVAL = Contract(
    "eval",
    "the evaluation view: metrics and steps, no payloads, no ids",
    "nothing; what evaluation may keep of a capture",
    "rollout_id",
    writer=EVALUATION_WRITER,
)
