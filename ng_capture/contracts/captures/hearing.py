"""What of a turn counts when conversations are compared: who spoke, texts, calls, results; not reasoning (3.5, 2)."""

import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from ng_capture.contracts.episode import Content, Role, Text, ToolResult, Turn
from ng_capture.contracts.sameness import parsed, words
from ng_capture.records.json_text import encode_json

_NOTHING = hashlib.sha256(b"ng-capture-conversation").digest()


class Heard(msgspec.Struct, frozen=True):
    """Some turns as digests.

    `turns` are those of each turn without its results; `begins` stand for no turn, the first, the first two, and so on;
    `results` for all results on as many turns. Equal digests are equal beginnings.
    """

    turns: tuple[bytes, ...]
    begins: tuple[bytes, ...]
    results: tuple[bytes, ...]

    @property
    def whole(self) -> bytes:
        """All turns."""
        return self.begins[-1]

    def then(self, turns: Iterable[Turn]) -> bytes:
        """The digest of these turns and of further ones behind them, whatever their results."""
        at = self.whole
        for turn in turns:
            at = _after(at, _turn(turn))
        return at


def heard(turns: Iterable[Turn]) -> Heard:
    """The digests of some turns."""
    each, begins, results = list[bytes](), [_NOTHING], [_NOTHING]
    for turn in turns:
        each.append(_turn(turn))
        begins.append(_after(begins[-1], each[-1]))
        at = results[-1]
        for result in turn.results:
            at = _after(at, _result(result))
        results.append(at)
    return Heard(tuple(each), tuple(begins), tuple(results))


def texts_of(content: Content | None) -> Iterator[str]:
    """The texts of a content, a part each."""
    if isinstance(content, str):
        yield content
    elif content is not None:
        yield from (part.text for part in content if isinstance(part, Text))


def _after(state: bytes, digest: bytes) -> bytes:
    return hashlib.sha256(state + digest).digest()


def _turn(turn: Turn) -> bytes:
    role = Role.SYSTEM if turn.role is Role.DEVELOPER else turn.role
    said = words(turn.content)
    if role is Role.ASSISTANT and isinstance(said, str):
        # harnesses take the spaces around an answer off
        said = said.strip()
    return _digest([role, said, [[call.call_id, call.name, parsed(call)] for call in turn.calls]])


def _result(result: ToolResult) -> bytes:
    return _digest([result.call_id, words(result.content)])


def _digest(value: object) -> bytes:
    return hashlib.sha256(encode_json(value)).digest()
