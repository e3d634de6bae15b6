"""What the steps of a trajectory owe each other: numbers, sides, times, links (contracts.md 1.3)."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from ng_capture.contracts.atif.place import Place, quoted, text_at, whole
from ng_capture.contracts.atif.schema import AGENT_ONLY, SYSTEM_OBSERVATION, spelled
from ng_capture.contracts.atif.times import moment
from ng_capture.contracts.rules import Fault
from ng_capture.records.json_text import object_in

Json = Mapping[str, object]


def steps_of(trajectory: Json, place: Place) -> Iterator[tuple[Json, Place]]:
    """The steps that are objects, with their places."""
    steps = trajectory.get("steps")
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict):
            yield step, place.step_at(index, step)


def results_of(step: Json, place: Place) -> Iterator[tuple[Json, Place]]:
    """The results of a step that are objects, with their places."""
    results = object_in(step.get("observation")).get("results")
    for index, result in enumerate(results if isinstance(results, list) else ()):
        if isinstance(result, dict):
            yield result, place.at("observation", "results", index)


def check_steps(trajectory: Json, place: Place) -> Iterator[Fault]:
    """The faults of the steps of one trajectory, but for their shapes."""
    yield from _check_numbers(trajectory, place)
    yield from _check_order(trajectory, place)
    yield from _check_ids(trajectory, place)
    for step, here in steps_of(trajectory, place):
        yield from _check_side(step, here)
        yield from _check_links(step, here)


def _check_numbers(trajectory: Json, place: Place) -> Iterator[Fault]:
    """A gap is told once: what counts on from a wrong number is told with it."""
    before = 0
    wrong = False
    for index, (step, here) in enumerate(steps_of(trajectory, place), start=1):
        number = whole(step.get("step_id"))
        if number is not None and number != index and not (wrong and number == before + 1):
            message = f"expected {index}, found {number}; steps are numbered from 1"
            yield here.at("step_id").fault("atif.step_id.sequence", message)
        wrong = number != index
        before = index if number is None else number


def _check_order(trajectory: Json, place: Place) -> Iterator[Fault]:
    latest: dict[bool, datetime] = {}
    for step, here in steps_of(trajectory, place):
        spelling = text_at(step, "timestamp")
        time = None if spelling is None else moment(spelling)
        if time is None:
            continue
        # a time without an offset can only be told from others like it
        naive = time.tzinfo is None
        if naive in latest and time < latest[naive]:
            message = f"{quoted(spelling)} is before {latest[naive].isoformat()}, a step further up"
            yield here.at("timestamp").fault("atif.timestamp.order", message)
        latest[naive] = max(time, latest.get(naive, time))


def _check_ids(trajectory: Json, place: Place) -> Iterator[Fault]:
    first: dict[str, int | None] = {}
    for step, here in steps_of(trajectory, place):
        for index, call_id in _call_ids(step):
            if call_id in first:
                message = f"{quoted(call_id)} names a call of step {first[call_id]}, too"
                yield here.at("tool_calls", index, "tool_call_id").fault("atif.tool_call.reused_id", message)
            first.setdefault(call_id, here.step)


def _check_side(step: Json, place: Place) -> Iterator[Fault]:
    source = step.get("source")
    calls = whole(step.get("llm_call_count"))
    if source in ("system", "user"):
        for name in AGENT_ONLY:
            if step.get(name) is not None:
                yield place.at(name).fault("atif.step.agent_only", f"a step of the {source} has no {name}")
        if calls is not None:
            message = f"a step of the {source} has no llm_call_count"
            yield place.at("llm_call_count").fault("atif.step.agent_only", message, "warning")
    if source == "system" and step.get("observation") is not None and place.version < SYSTEM_OBSERVATION:
        since, declared = spelled(SYSTEM_OBSERVATION), spelled(place.version)
        message = f"system steps observe since {since}, the trajectory is of {declared}"
        yield place.at("observation").fault("atif.version.field_too_new", message)
    if source == "agent" and calls == 0:
        for name in ("metrics", "reasoning_content", "reasoning_effort"):
            if step.get(name) is not None:
                message = f"llm_call_count is 0: no model made the step, so it has no {name}"
                milder = name == "reasoning_effort"
                yield place.at(name).fault("atif.llm_call_count.zero", message, "warning" if milder else None)


def _check_links(step: Json, place: Place) -> Iterator[Fault]:
    ids = [call_id for _, call_id in _call_ids(step)]
    calls = step.get("tool_calls")
    # what a broken call was called, nobody knows
    known = calls is None or (isinstance(calls, list) and len(calls) == len(ids))
    answered = set[str]()
    unlinked = 0
    for result, here in results_of(step, place):
        call_id = text_at(result, "source_call_id")
        if call_id is not None and call_id not in ids and known:
            message = f"step {place.step} has no call {quoted(call_id)}, and a result names it"
            yield here.at("source_call_id").fault("atif.observation.source_call_id", message)
        elif call_id is not None:
            answered.add(call_id)
        elif result.get("source_call_id") is None:
            unlinked += 1
            if ids:
                message = f"a result of step {place.step} names no call, and the step has {len(ids)}"
                yield here.fault("atif.observation.unlinked", message)
    # any of the unlinked results may be the one that is missing
    if not unlinked and step.get("source") == "agent":
        for index, call_id in _call_ids(step):
            if call_id not in answered:
                message = f"{quoted(call_id)} has no result in step {place.step}"
                yield place.at("tool_calls", index).fault("atif.tool_call.no_result", message)


def _call_ids(step: Json) -> Iterator[tuple[int, str]]:
    calls = step.get("tool_calls")
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        call_id = text_at(call, "tool_call_id") if isinstance(call, dict) else None
        if call_id is not None:
            yield index, call_id
