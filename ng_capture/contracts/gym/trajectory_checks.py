"""Every rule on what Gym saw of a rollout: ids are one of a kind, references lead somewhere (contracts.md 5.4)."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ng_capture.contracts.dialects.fields import text_in
from ng_capture.contracts.episode import Json
from ng_capture.contracts.gym.item_checks import Broken, broken_item
from ng_capture.contracts.gym.trajectory import CallRef, Trajectory, read_trajectory
from ng_capture.contracts.rules import pointer
from ng_capture.records.json_text import object_in
from ng_capture.records.rollout_row import BadRow, number, rollout_id_of
from ng_capture.records.usage import count

_AT = "/ng_trajectory"
_LISTS = ("invocations", "turns", "model_calls", "tool_calls", "gaps")


def broken_trajectory(row: Json) -> Iterator[Broken]:
    """The rules that `ng_trajectory` and `ng_model_call_capture` break."""
    yield from _capture(row)
    value = row.get("ng_trajectory")
    if value is None:
        return
    trajectory = read_trajectory(value)
    if trajectory is None:
        yield "trajectory.type", "no JSON object", _AT
        return
    yield from _shape(trajectory.raw)
    yield from _ids(trajectory)
    yield from _turns(trajectory)
    yield from _parents(trajectory)
    yield from _conversations(trajectory)
    yield from _tools(trajectory)
    named = _rollout_id(row)
    if named is not None and trajectory.raw.get("rollout_id") not in (None, named):
        yield "trajectory.other_row", f"of {trajectory.raw['rollout_id']}, the row is {named}", f"{_AT}/rollout_id"


def _rollout_id(row: Json) -> str | None:
    try:
        return rollout_id_of(row)
    except BadRow:
        return None


def _capture(row: Json) -> Iterator[Broken]:
    value, at = row.get("ng_model_call_capture"), "/ng_model_call_capture"
    if value is None:
        return
    calls = object_in(value).get("calls")
    if not isinstance(calls, list):
        yield "capture.type", "no list of calls", at
        return
    ids = [text_in(object_in(call), "model_call_id") for call in calls]
    yield from _repeated(ids, "capture.call_repeated", f"{at}/calls")
    told, named = text_in(object_in(value), "rollout_id"), _rollout_id(row)
    if told is not None and named is not None and told != named:
        yield "capture.other_row", f"of {told}, the row is {named}", f"{at}/rollout_id"


def _shape(value: Json) -> Iterator[Broken]:
    if value.get("schema_version", "1.0") != "1.0":
        yield "trajectory.version", f"{value['schema_version']!r}, not 1.0", f"{_AT}/schema_version"
    for key in ("task_id", "rollout_id"):
        if text_in(value, key) is None:
            yield "trajectory.missing", f"no {key}", _AT
    for key in _LISTS:
        members = value.get(key, [])
        if not isinstance(members, list):
            yield "trajectory.type", f"{key} is no list", f"{_AT}/{key}"
            continue
        for at, member in enumerate(members):
            if not isinstance(member, dict):
                yield "trajectory.type", "no JSON object", f"{_AT}/{key}{pointer(at)}"
            elif key == "gaps" and text_in(member, "code") is None:
                yield "trajectory.missing", "a gap without a code", f"{_AT}/{key}{pointer(at)}"
            elif key == "invocations" and text_in(member, "invocation_id") is None:
                yield "trajectory.missing", "an invocation without an id", f"{_AT}/{key}{pointer(at)}"


def _ids(trajectory: Trajectory) -> Iterator[Broken]:
    invocations = [each.invocation_id for each in trajectory.invocations]
    yield from _repeated(invocations, "trajectory.invocation_repeated", f"{_AT}/invocations")
    calls = [call.ref.model_call_id for call in trajectory.calls]
    yield from _repeated(calls, "trajectory.call_repeated", f"{_AT}/model_calls")


def _repeated(ids: Iterable[str | None], rule: str, path: str) -> Iterator[Broken]:
    for each, times in Counter(each for each in ids if each is not None).items():
        if times > 1:
            yield rule, f"{each} {times} times", path


def _turns(trajectory: Trajectory) -> Iterator[Broken]:
    raw = trajectory.raw
    members = raw.get("turns")
    seen = set[tuple[object, object]]()
    for at, value in enumerate(members if isinstance(members, list) else ()):
        turn, here = object_in(value), f"{_AT}/turns{pointer(at)}"
        for key in ("task_id", "rollout_id"):
            if turn.get(key) != raw.get(key):
                yield "trajectory.turn_identity", f"{key} {turn.get(key)!r} is not the trajectory's", f"{here}/{key}"
        turn_no, invocation = count(turn.get("turn_no")), text_in(turn, "invocation_id")
        if turn_no is None or turn_no < 1:
            yield "trajectory.turn_no", "no number from 1", f"{here}/turn_no"
        elif (invocation, turn_no) in seen:
            yield "trajectory.turn_repeated", f"turn {turn_no} of {invocation} again", here
        seen.add((invocation, turn_no))
        for key, known in (("timestamp", number), ("step_count", count)):
            if known(turn.get(key)) is None:
                yield "trajectory.missing", f"no {key}", here
    for at, record in enumerate(trajectory.turns):
        for ref in record.refs:
            yield from _reference(trajectory, ref, f"{_AT}/turns{pointer(at)}/model_calls")


def _reference(trajectory: Trajectory, ref: CallRef, path: str) -> Iterator[Broken]:
    named = ref.model_call_id or (ref.response_id if ref.model_ref is not None else None)
    if not named:
        yield "trajectory.reference", "names neither a call nor a server and its response", path
    elif trajectory.call_of(ref) is None:
        yield "trajectory.reference_unknown", f"{named}: not exactly one captured call", path


def _parents(trajectory: Trajectory) -> Iterator[Broken]:
    parents = {each.invocation_id: each.parent_id for each in trajectory.invocations}
    for each in trajectory.invocations:
        chain, current = list[str](), each.invocation_id
        while current in parents and current not in chain:
            chain.append(current)
            current = parents[current] or ""
        if current == each.invocation_id:
            path = f"{_AT}/invocations{pointer(each.place)}/parent_invocation_id"
            yield "trajectory.parent_cycle", f"{' under '.join(chain)} under {current}", path


def _conversations(trajectory: Trajectory) -> Iterator[Broken]:
    for each in trajectory.invocations:
        for at, item in enumerate(each.conversation):
            place = f"{_AT}/invocations{pointer(each.place)}/conversation{pointer(at)}"
            yield from broken_item(item, place, "input")


def _tools(trajectory: Trajectory) -> Iterator[Broken]:
    members = trajectory.raw.get("tool_calls")
    for at, value in enumerate(members if isinstance(members, list) else ()):
        tool = object_in(value)
        begun, ended = number(tool.get("started_at")), number(tool.get("completed_at"))
        if begun is not None and ended is not None and ended < begun:
            yield "trajectory.tool_time", "ended before it began", f"{_AT}/tool_calls{pointer(at)}"
