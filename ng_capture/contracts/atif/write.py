"""An episode to one ATIF document, which is checked before it is handed out (contracts.md 3.4, 3.5)."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ng_capture import __version__
from ng_capture.contracts.atif.blanks import fill_blanks
from ng_capture.contracts.atif.draft import Draft
from ng_capture.contracts.atif.notes import KEY, RootNotes, sealed
from ng_capture.contracts.atif.place import Place
from ng_capture.contracts.atif.read import ROW_FIELDS, gym_rollout_id
from ng_capture.contracts.atif.validate import CONTRACT, check_document
from ng_capture.contracts.atif.write_step import write_step
from ng_capture.contracts.atif.write_trajectory import in_order, stamp, write_trajectory
from ng_capture.contracts.careful_json import read_carefully
from ng_capture.contracts.episode import Episode, Json
from ng_capture.contracts.identity import made_id
from ng_capture.contracts.interface import Options, Refused, Written
from ng_capture.contracts.losses import LOSS_CODES
from ng_capture.contracts.rules import Fault
from ng_capture.records.json_text import is_deep, object_in
from ng_capture.records.usage import count


def write(episode: Episode, options: Options) -> Written | Refused:
    """The document of an episode, on one line; refused with its faults where no valid one can be made of it."""
    draft = Draft(episode, options)
    document = _document(draft)
    data, faults = _encoded(document)
    if faults:
        return Refused(faults, tuple(draft.losses))
    return Written((data,), tuple(draft.losses), tuple(draft.files.values()))


def _document(draft: Draft) -> dict[str, Any]:
    """The document of an episode, sound or not."""
    document = write_trajectory(draft.episode.main, draft)
    extra = sealed(document.get("extra"), _root_notes(draft))
    if extra is not None:
        document["extra"] = extra
    document = stamp(document, draft.version)
    document |= _ids(document, draft)
    if draft.episode.blanks is not None:
        fill_blanks(document, draft.episode.blanks)
    _tell_conversion(document, draft)
    return in_order(document)


def _ids(document: Json, draft: Draft) -> dict[str, str]:
    """The ids of a document that was no ATIF, in the form of Gym's exporter; they name the rollout (3.4, 9)."""
    episode, options = draft.episode, draft.options
    session = options.session_id or episode.main.session_id
    if draft.same:
        return {} if session is None else {"session_id": session}
    session = session or episode.rollout_id
    row = episode.row or {}
    task, rollout = count(row.get("_ng_task_index")), count(row.get("_ng_rollout_index"))
    name = episode.main.trajectory_id
    if name is None and session is not None and task is not None and rollout is not None:
        name = f"{session}:{task}:{rollout}"
    name = name or episode.rollout_id or made_id("trajectory_", document)
    return {"trajectory_id": name} if session is None else {"session_id": session, "trajectory_id": name}


def _root_notes(draft: Draft) -> RootNotes:
    episode = draft.episode
    omitted = [
        write_step(turn, at, draft, f"/extra/{KEY}/omitted/{at - 1}")
        for at, turn in enumerate(episode.omitted, start=1)
    ]
    return RootNotes(
        rollout=_rollout(draft) or None,
        request=None if episode.request is None else dict(episode.request),
        response=None if episode.response is None else dict(episode.response),
        omitted=omitted or None,
    )


def _rollout(draft: Draft) -> dict[str, object]:
    """What is kept of a row: the reward and the names of the rollout; the rest where it is asked for (3.4, 11)."""
    episode = draft.episode
    row = dict(episode.row or {})
    told = {name: row.pop(name) for name in ROW_FIELDS if name in row}
    if episode.reward is not None:
        told["reward"] = episode.reward
    if episode.rollout_id is not None and episode.rollout_id != gym_rollout_id(episode.main.extra):
        told["rollout_id"] = episode.rollout_id
    if episode.truncated is not None:
        told["truncated"] = episode.truncated
    if row and (draft.same or draft.options.keep_row_extras):
        told["row"] = row
    elif row:
        draft.lose("row_fields_dropped", "", ", ".join(sorted(row)))
    return told


def _tell_conversion(document: dict[str, Any], draft: Draft) -> None:
    """Says in the document how it came about, unless it is what it was."""
    episode = draft.episode
    losses = (*episode.losses, *draft.losses)
    if draft.same and episode.version == draft.version and not losses:
        return
    counts = Counter[str]()
    for loss in losses:
        counts[loss.code] += loss.count
    told: dict[str, object] = {
        "from": episode.version if draft.same else episode.contract,
        "to": draft.version,
        "profile": draft.options.profile.value,
        "tool_version": f"ng-capture {__version__}",
        "losses": [
            {"code": code, "severity": LOSS_CODES[code].severity, "count": number} for code, number in counts.items()
        ],
    }
    extra = object_in(document.get("extra"))
    noted = object_in(extra.get(KEY))
    if "conversion" in noted:
        told["before"] = noted["conversion"]
    document["extra"] = {**extra, KEY: {**noted, "conversion": told}}


def _encoded(document: Mapping[str, object]) -> tuple[bytes, tuple[Fault, ...]]:
    """The text of a document; nothing, and why, where it is not a sound one."""
    faults = list(_errors(document))
    if faults:
        return b"", tuple(faults)
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False).encode(), ()
    except ValueError:
        # half of a surrogate pair, or a number that is not finite, which no JSON can hold: the reader tells where
        return b"", read_carefully(json.dumps(document).encode(), CONTRACT).faults


def _errors(document: Mapping[str, object]) -> Iterator[Fault]:
    if is_deep(document):
        yield Place().fault("atif.json.syntax", "nested more deeply than any document that is read")
        return
    yield from (fault for fault in check_document(document) if fault.severity == "error")
