"""What each call of a chain asked and answered, read from its raw calls (capture-files.md 7)."""

from collections.abc import Collection, Mapping

import msgspec

from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import FileKind
from ng_capture.ingest.messages import ASSISTANT, Message, answer_message, request_messages
from ng_capture.outputs.export.text.chat_form import tools_in_chat_form
from ng_capture.outputs.export.text.unsaid import unsaid_in
from ng_capture.outputs.raw_lines import raw_lines
from ng_capture.records.assembling import assemble
from ng_capture.records.json_text import decode_json, object_in, printable
from ng_capture.records.snapshot import Snapshot
from ng_capture.records.streams import stream_events


class Talk(msgspec.Struct, frozen=True):
    """One raw call. `asked` counts the turns of its request, `history` holds them where they were wanted.

    `fault` says why its text is not the whole conversation; None where it is.
    """

    asked: int
    answer: Message | None
    history: tuple[Message, ...] = ()
    tools: str | None = None
    fault: str | None = None


NO_CALL = Talk(0, None, fault="no raw call")


def read_talks(
    files: RolloutFiles | None, snapshot: Snapshot, calls: Collection[str], ends: Collection[str]
) -> Mapping[str, Talk]:
    """The raw calls with these ids, those of `ends` with their history; raises SurroundingsError.

    What was appended since `snapshot` was read is left out.
    """
    found: dict[str, Talk] = {}
    for name in files.of_kind(FileKind.CAPTURE) if files is not None else ():
        assert files is not None
        for line in raw_lines(files, name, snapshot):
            _take(line.data, calls, ends, found)
    return found


def _take(data: bytes, calls: Collection[str], ends: Collection[str], found: dict[str, Talk]) -> None:
    """Add what a line tells; damaged lines are named by the verdict."""
    try:
        value = object_in(decode_json(data).value)
        call_id = value.get("model_call_id")
        if not isinstance(call_id, str) or (call_id := printable(call_id)) not in calls:
            return
        talk = _talk(value, whole=call_id in ends)
    except (ValueError, RecursionError):
        return
    found[call_id] = _agreed(found[call_id], talk) if call_id in found else talk


def _talk(value: Mapping[str, object], *, whole: bool) -> Talk:
    request = object_in(value.get("request"))
    response = object_in(value.get("response")) or assemble(stream_events(value.get("response_raw")))
    asked, answer = request_messages(request), answer_message(response)
    if not whole:
        return Talk(len(asked), answer)
    return Talk(len(asked), answer, asked, tools_in_chat_form(request), _fault(asked, answer, request, response))


def _fault(
    asked: tuple[Message, ...], answer: Message | None, request: Mapping[str, object], response: Mapping[str, object]
) -> str | None:
    if answer is None:
        return "its raw call has no answer"
    if not asked:
        return "its request has no messages"
    if asked[-1].role == ASSISTANT:
        return "its request begins the answer"
    unsaid = unsaid_in(request, response)
    return None if unsaid is None else f"no text says {printable(unsaid)}"


def _agreed(one: Talk, other: Talk) -> Talk:
    """Of two lines of one call the one that has an answer; nothing says which of two answers was trained."""
    if one == other or other.answer is None:
        return one
    return other if one.answer is None else Talk(0, None, fault="its raw calls contradict each other")
