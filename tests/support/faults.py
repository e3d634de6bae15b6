"""Faults of captures; each says what it touches.

A fault of a record is applied to the call before its line and the state are written, as by a faulty writer; a fault of
the disk is done to what was written. What a fault does is told in the capture's sets of call ids (`Capture.whole`,
`nowhere`, `silent`, `touched`), so that a test needs no table of faults.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from hypothesis import strategies as st

from tests.support.capture import Capture
from tests.support.forge import Call, Forge, Row

Draw = Callable[[st.SearchStrategy[Any]], Any]
LOST = "f" * 32
"""A call id that no rollout here has."""


@dataclass(frozen=True)
class Fault:
    """`apply` changes a capture and notes what that does to it."""

    apply: Callable[[Draw, Capture], None]
    of_disk: bool = False


def _of_call(
    change: Callable[[Draw, Capture, Call], bool | None], *, nowhere: bool = False, silent: bool = False
) -> Fault:
    """A fault of one record that no other fault has touched; `change` returns False where it cannot be done."""

    def apply(draw: Draw, capture: Capture) -> None:
        sound = [call for call in capture.forge.calls if call.id not in capture.touched]
        if not sound:
            return
        call = draw(st.sampled_from(sound))
        if change(draw, capture, call) is False:
            return
        capture.touched.add(call.id)
        if nowhere:
            capture.nowhere.add(call.id)
        if silent:
            capture.silent.add(call.id)

    return Fault(apply)


def _field(**values: Any) -> Callable[[Draw, Capture, Call], None]:
    """A change of a record's fields; a value that is a strategy is drawn from."""

    def change(draw: Draw, capture: Capture, call: Call) -> None:
        drawn = {key: draw(value) if isinstance(value, st.SearchStrategy) else value for key, value in values.items()}
        call.fields.update(drawn)

    return change


def _some_id(values: st.SearchStrategy[Any]) -> Callable[[Draw, Capture, Call], bool]:
    """Another value in the place of one stored id."""

    def change(draw: Draw, capture: Capture, call: Call) -> bool:
        stored = {key: list(call.record()[key]) for key in ("prompt_token_ids", "generation_token_ids")}
        key = draw(st.sampled_from(sorted(stored)))
        if not stored[key]:
            return False
        place = draw(st.integers(0, len(stored[key]) - 1))
        value = draw(values)
        if value == stored[key][place] and type(value) is int:
            return False
        stored[key][place] = value
        call.fields[key] = stored[key]
        return True

    return change


def _log_prob(values: st.SearchStrategy[Any]) -> Callable[[Draw, Capture, Call], bool]:
    def change(draw: Draw, capture: Capture, call: Call) -> bool:
        if not call.generation:
            return False
        changed: list[Any] = call.log_probs
        changed[draw(st.integers(0, len(changed) - 1))] = draw(values)
        call.fields["generation_log_probs"] = changed
        return True

    return change


def _log_prob_count(draw: Draw, capture: Capture, call: Call) -> bool:
    changed = draw(st.sampled_from([[*call.log_probs, -0.5], call.log_probs[1:]]))
    call.fields["generation_log_probs"] = changed
    return len(changed) != len(call.generation)


def _wrong_parent(draw: Draw, capture: Capture, call: Call) -> bool:
    """The link leads to another call: perhaps a later one, perhaps round in a circle."""
    others = [other.id for other in capture.forge.calls if other is not call and other is not call.parent]
    if not others:
        return False
    call.fields.update(parent_call_id=draw(st.sampled_from(others)), parent_resolution="resolved")
    return True


def _exchange(change: Callable[[Row], None]) -> Callable[[Draw, Capture, Call], bool]:
    def apply(draw: Draw, capture: Capture, call: Call) -> bool:
        found = [exchange for exchange in capture.exchanges or () if exchange["model_call_id"] == call.id]
        for exchange in found:
            change(exchange)
        return bool(found)

    return apply


def _no_end(exchange: Row) -> None:
    exchange["error_category"] = "stream_truncated"


def _other_count(exchange: Row) -> None:
    exchange["response"]["usage"]["output_tokens"] += 1


def _unreadable(fault: Fault) -> Fault:
    """The record cannot be read, so its call may be lost."""

    def apply(draw: Draw, capture: Capture) -> None:
        before = len(capture.touched)
        fault.apply(draw, capture)
        capture.whole |= len(capture.touched) > before

    return Fault(apply)


def _of_disk(change: Callable[[Draw, Capture], bool], *, whole: bool = False) -> Fault:
    def apply(draw: Draw, capture: Capture) -> None:
        if change(draw, capture) and whole:
            capture.whole = True

    return Fault(apply, of_disk=True)


def _of_line(change: Callable[[Draw, bytes], bytes]) -> Callable[[Draw, Capture], bool]:
    """A change of the bytes of some line."""

    def apply(draw: Draw, capture: Capture) -> bool:
        sound = [index for index, (name, _) in enumerate(capture.lines) if name not in capture.touched]
        if not sound:
            return False
        index = draw(st.sampled_from(sound))
        name, line = capture.lines[index]
        capture.lines[index] = name, change(draw, line)
        capture.touched.add(name)
        return True

    return apply


def _cut(draw: Draw, line: bytes) -> bytes:
    return line[: draw(st.integers(2, len(line) - 1))]


def _overwritten(draw: Draw, line: bytes) -> bytes:
    place = draw(st.integers(0, len(line) - 1))
    return b"%b\x01%b" % (line[:place], line[place + 1 :])


def _torn_tail(draw: Draw, capture: Capture) -> bool:
    line = capture.forge.calls[0].line()
    capture.tail += line[: draw(st.integers(1, len(line) - 1))]
    return True


def _fused(draw: Draw, capture: Capture) -> bool:
    if len(capture.lines) < 2:
        return False
    index = draw(st.integers(1, len(capture.lines) - 1))
    _, behind = capture.lines.pop(index)
    name, line = capture.lines[index - 1]
    capture.lines[index - 1] = name, line + behind
    capture.touched.add(name)
    return True


def _missing_newline(draw: Draw, capture: Capture) -> bool:
    if capture.tail or not capture.lines:
        return False
    capture.last_break = b""
    return True


def _lost_line(draw: Draw, capture: Capture) -> bool:
    sound = [name for name, _ in capture.lines if name not in capture.touched]
    if not sound:
        return False
    lost = draw(st.sampled_from(sound))
    capture.lines = [(name, line) for name, line in capture.lines if name != lost]
    capture.touched.add(lost)
    capture.nowhere.add(lost)
    capture.whole |= bool(capture.kept) or not capture.lines
    return True


def _again(draw: Draw, capture: Capture) -> bool:
    """The same record once more, spelled the same or with spaces."""
    if not capture.lines:
        return False
    name, line = draw(st.sampled_from(capture.lines))
    if draw(st.booleans()) and name not in capture.touched:
        line = orjson.dumps(orjson.loads(line), option=orjson.OPT_INDENT_2).replace(b"\n", b" ")
    capture.lines.insert(draw(st.integers(0, len(capture.lines))), (name, line))
    return True


def _conflict(draw: Draw, capture: Capture) -> bool:
    """Another content under the id of a call: nothing tells which of the two is true."""
    sound = [call for call in capture.forge.calls if call.id not in capture.touched]
    if not sound:
        return False
    call = draw(st.sampled_from(sound))
    twin = Forge(delta=capture.forge.delta)
    twin.calls = list(capture.forge.calls)
    other = draw(st.sampled_from([{"created_at": 1.0}, {"model": "other"}, {"generation": [8, 8, 8]}, {"prompt": [8]}]))
    changed = Call(twin, call.number, call.id, call.prompt, call.generation, call.parent, call.request)
    changed.generation = other.pop("generation", changed.generation)
    changed.prompt = [*changed.prompt, *other.pop("prompt", [])]
    changed.fields = dict(other)
    line = changed.line()
    if line == call.line():
        return False
    capture.lines.insert(draw(st.integers(0, len(capture.lines))), (call.id, line))
    capture.touched.add(call.id)
    capture.nowhere |= _who_name(capture, call.id)
    return True


def _who_name(capture: Capture, call_id: str) -> set[str]:
    """A call and all whose records name it as an ancestor."""
    named = {call.id: call.record()["parent_call_id"] for call in capture.forge.calls}
    found = {call_id}
    while more := {call for call, parent in named.items() if parent in found} - found:
        found |= more
    return found


def _key_twice(draw: Draw, capture: Capture) -> bool:
    sound = [index for index, (name, _) in enumerate(capture.lines) if name not in capture.touched]
    if not sound:
        return False
    index = draw(st.sampled_from(sound))
    name, line = capture.lines[index]
    if sum(other == name for other, _ in capture.lines) > 1:
        return False
    key = draw(st.sampled_from([b"prompt_token_ids", b"generation_token_ids", b"generation_log_probs"]))
    spelled = draw(st.sampled_from([b'{"%b":[5],%b', b'{"%b" : [5] , %b', b'{"%b":7,%b']))
    capture.lines[index] = name, spelled % (key, line[1:])
    capture.touched.add(name)
    capture.nowhere.add(name)
    return True


def _harmless(draw: Draw, capture: Capture) -> bool:
    kind = draw(st.sampled_from(["bom", "crlf", "blank"]))
    if kind == "bom":
        capture.head = b"\xef\xbb\xbf"
    elif kind == "crlf":
        capture.lines = [(name, line + b"\r") for name, line in capture.lines]
    elif capture.last_break:
        capture.tail = b"\n  \n" + capture.tail
    return True


def _dangling_intent(draw: Draw, capture: Capture) -> bool:
    known = capture.intents or []
    place = draw(st.integers(0, len(known)))
    capture.intents = [*known[:place], LOST, *known[place:]]
    return True


def _marker(*contents: bytes) -> Callable[[Draw, Capture], bool]:
    def change(draw: Draw, capture: Capture) -> bool:
        capture.marks = draw(st.sampled_from(contents))
        return True

    return change


def _state(**values: Any) -> Callable[[Draw, Capture], bool]:
    def change(draw: Draw, capture: Capture) -> bool:
        capture.state = (capture.state or capture.forge.state()) | values
        return True

    return change


def _indexed(draw: Draw, capture: Capture) -> bool:
    state = capture.state or capture.forge.state()
    capture.state = {**state, "entry_digests": {**state["entry_digests"], LOST: "0" * 64}}
    return True


def _without_tokens(draw: Draw, capture: Capture) -> bool:
    stranger = {**capture.forge.calls[0].raw(), "model_call_id": LOST}
    capture.exchanges = [*(capture.exchanges or ()), stranger]
    return True


_NO_TOKEN_IDS = st.sampled_from([-1, 2**31, 2**63, 2**70, 5.0, "7", True, None, [1]])

CALL_FAULTS: dict[str, Fault] = {
    "another id": _of_call(_some_id(st.integers(0, 2**31 - 1)), nowhere=True),
    "wrong digest": _of_call(_field(digest=st.sampled_from(["0" * 64, "?"])), nowhere=True),
    "wrong length": _of_call(_field(cum_len=st.sampled_from([-1, 99, 2**40])), nowhere=True),
    "no token id": _of_call(_some_id(_NO_TOKEN_IDS), nowhere=True),
    "foreign rollout": _of_call(_field(rollout_id=st.sampled_from(["r-2", "", "r-1 "])), nowhere=True),
    "parent named and not": _of_call(_field(parent_call_id=LOST, parent_resolution="root"), nowhere=True),
    "resolved to nothing": _of_call(_field(parent_call_id=None, parent_resolution="resolved"), nowhere=True),
    "item outside": _of_call(_field(token_item_index=7), nowhere=True),
    "null log probability": _of_call(_log_prob(st.none()), silent=True),
    "impossible log probability": _of_call(_log_prob(st.sampled_from([0.5, 2e-6, -9999.0, -1e30])), silent=True),
    "log probability of another type": _of_call(_log_prob(st.sampled_from(["-0.5", True, [-0.5]])), silent=True),
    "another number of log probabilities": _of_call(_log_prob_count, silent=True),
    "missing parent": _of_call(_field(parent_call_id=LOST, parent_resolution="resolved")),
    "wrong parent": _of_call(_wrong_parent),
    "parent unresolved": _of_call(_field(parent_call_id=None, parent_resolution="unresolved")),
    "no link": _of_call(_field(parent_call_id=None, parent_resolution=None)),
    "another usage count": _of_call(_exchange(_other_count), nowhere=True),
    "stream without end": _of_call(_exchange(_no_end), nowhere=True),
    "lost line": _of_disk(_lost_line),
    "key twice": _of_disk(_key_twice),
    "conflicting duplicate": _of_disk(_conflict),
    "identical duplicate": _of_disk(_again),
}
"""Faults of single calls: off the scored call's path they mask nothing."""

WHOLE_FAULTS: dict[str, Fault] = {
    "damaged line": _of_disk(_of_line(_cut), whole=True),
    "overwritten byte": _of_disk(_of_line(_overwritten), whole=True),
    "zero bytes": _of_disk(_of_line(lambda draw, line: b"\0" * len(line)), whole=True),
    "newer schema": _unreadable(_of_call(_field(schema_version=2))),
    "no record": _unreadable(_of_call(_field(rollout_id=None))),
    "dangling intent": _of_disk(_dangling_intent, whole=True),
    "empty marker": _of_disk(_marker(b""), whole=True),
    "marker": _of_disk(_marker(b"\n", LOST.encode() + b"\n"), whole=True),
    "state incomplete": _of_disk(_state(incomplete=True), whole=True),
    "state of another type": _of_disk(_state(frozen="no"), whole=True),
    "state names a lost call": _of_disk(_indexed, whole=True),
    "state covers more": _of_disk(_state(indexed_size=10**9), whole=True),
    "raw call without tokens": _of_disk(_without_tokens, whole=True),
}
"""Faults that may mean a lost call: they mask the rollout under every policy."""

END_FAULTS: dict[str, Fault] = {
    "torn tail": _of_disk(_torn_tail, whole=True),
    "missing newline": _of_disk(_missing_newline, whole=True),
    "fused lines": _of_disk(_fused, whole=True),
    "harmless bytes": _of_disk(_harmless),
}
"""Faults of the file rather than of its lines: what they are depends on where they stand."""

FAULTS = {"call": CALL_FAULTS, "whole": WHOLE_FAULTS, "end": END_FAULTS}
ALL_FAULTS = CALL_FAULTS | WHOLE_FAULTS | END_FAULTS
