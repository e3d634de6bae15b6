"""What a document names: embedded trajectories, the file that goes on, images and sounds (contracts.md 1.3)."""

import re
from collections.abc import Iterator, Mapping

from ng_capture.contracts.atif.place import Place, quoted, text_at
from ng_capture.contracts.atif.schema import LAST_BY_SESSION
from ng_capture.contracts.atif.steps import results_of, steps_of
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|data:")

Json = Mapping[str, object]


def embedded(trajectory: Json, place: Place) -> Iterator[tuple[Json, Place]]:
    """The trajectories that one holds itself, with their places."""
    members = trajectory.get("subagent_trajectories")
    for index, member in enumerate(members if isinstance(members, list) else ()):
        if isinstance(member, dict):
            yield member, place.at("subagent_trajectories", index).trajectory(member)


def all_trajectories(trajectory: Json, place: Place) -> Iterator[tuple[Json, Place]]:
    """A trajectory and all that it holds, however deep."""
    yield trajectory, place
    for member, here in embedded(trajectory, place):
        yield from all_trajectories(member, here)


def check_references(document: Json, source: Source | None) -> Iterator[Fault]:
    """The faults of references in a whole document; files are looked for beside the source, if there is one."""
    trajectories = list(all_trajectories(document, Place().trajectory(document)))
    known = {text_at(member, "trajectory_id") for member, _ in trajectories[1:]}
    named = set[str]()
    for trajectory, place in trajectories:
        yield from _check_embedded(trajectory, place)
        for step, here in steps_of(trajectory, place):
            for result, where in results_of(step, here):
                for reference, at in _references(result, where):
                    named |= {text_at(reference, "trajectory_id") or ""}
                    yield from _check_reference(reference, at, known, source)
            yield from _check_media(step, here, source)
        yield from _check_continuation(trajectory, place, source)
    for member, place in trajectories[1:]:
        name = text_at(member, "trajectory_id")
        if name is not None and name not in named:
            yield place.fault("atif.subagent.unreferenced", f"no reference names {quoted(name)}")


def _check_embedded(trajectory: Json, place: Place) -> Iterator[Fault]:
    seen = set[str]()
    for member, here in embedded(trajectory, place):
        name = text_at(member, "trajectory_id")
        if member.get("trajectory_id") is None:
            yield here.fault("atif.subagent.trajectory_id", "an embedded trajectory has no trajectory_id")
        elif name in seen:
            message = f"{quoted(name)} names another embedded trajectory, too"
            yield here.at("trajectory_id").fault("atif.subagent.trajectory_id", message)
        seen |= {name} if name is not None else set()


def _references(result: Json, place: Place) -> Iterator[tuple[Json, Place]]:
    members = result.get("subagent_trajectory_ref")
    for index, member in enumerate(members if isinstance(members, list) else ()):
        if isinstance(member, dict):
            yield member, place.at("subagent_trajectory_ref", index)


def _check_reference(reference: Json, place: Place, known: set[str | None], source: Source | None) -> Iterator[Fault]:
    name, path = text_at(reference, "trajectory_id"), text_at(reference, "trajectory_path")
    if reference.get("trajectory_id") is None and reference.get("trajectory_path") is None:
        legacy = place.version <= LAST_BY_SESSION and reference.get("session_id") is not None
        message = "a reference has neither trajectory_id nor trajectory_path"
        yield place.fault("atif.subagent_ref.unresolvable", message, "warning" if legacy else None)
    elif path is not None and name not in known:
        if missing_file(path, source):
            yield place.at("trajectory_path").fault("atif.subagent_ref.not_found", f"{quoted(path)} is not there")
    elif name is not None and name not in known:
        message = f"no embedded trajectory is called {quoted(name)}"
        yield place.at("trajectory_id").fault("atif.subagent_ref.not_found", message)


def _check_continuation(trajectory: Json, place: Place, source: Source | None) -> Iterator[Fault]:
    name = text_at(trajectory, "continued_trajectory_ref")
    if name is not None and missing_file(name, source):
        here = place.at("continued_trajectory_ref")
        yield here.fault("atif.continuation.not_found", f"{quoted(name)} is not there")


def _check_media(step: Json, place: Place, source: Source | None) -> Iterator[Fault]:
    contents = [(step.get("message"), place.at("message"))]
    contents += [(result.get("content"), here.at("content")) for result, here in results_of(step, place)]
    for content, here in contents:
        for index, part in enumerate(content if isinstance(content, list) else ()):
            shown = isinstance(part, dict) and part.get("type") in ("image", "audio")
            media = part.get("source") if shown else None
            path = text_at(media, "path") if isinstance(media, dict) else None
            if path is not None and missing_file(path, source):
                at = here.at(index, "source", "path")
                yield at.fault("atif.content.file_missing", f"{quoted(path)} is not there")


def missing_file(path: str, source: Source | None) -> bool:
    """True for the name of a file that is not beside the source; nobody looks for addresses, or without a source."""
    if source is None or source.path is None or _ADDRESS.match(path):
        return False
    return source.beside(path) is None
