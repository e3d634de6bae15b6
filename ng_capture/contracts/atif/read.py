"""ATIF v1.0 to v1.8 to an episode; a document with errors is refused with all of them."""

from collections.abc import Iterator

from ng_capture.contracts.atif.agents import read_agent
from ng_capture.contracts.atif.blanks import blanks_of
from ng_capture.contracts.atif.metrics import read_totals
from ng_capture.contracts.atif.notes import Object, RootNotes, opened
from ng_capture.contracts.atif.place import Place, text_at
from ng_capture.contracts.atif.read_step import read_step
from ng_capture.contracts.atif.shape import check_object
from ng_capture.contracts.atif.validate import CONTRACT, check_source
from ng_capture.contracts.episode import Episode, Json, Thread, Turn
from ng_capture.contracts.interface import Options, Read, Refused
from ng_capture.contracts.rules import has_errors, pointer
from ng_capture.contracts.sources import Source
from ng_capture.records.json_text import object_in, objects_in

ROW_FIELDS = ("reward", "_ng_task_index", "_ng_rollout_index", "agent_ref")
"""The fields of a finished row that stay with a trajectory (contracts.md 3.4, 11)."""


def read(source: Source, options: Options) -> Iterator[Read | Refused]:
    """The episode of the one document of a source.

    References to files stay references: what they name are documents of their own. Only under `inline_media` are images
    read that lie beside the document. Raises SurroundingsError for what cannot be read.
    """
    checked = check_source(source)
    if checked.document is None:
        yield Refused(checked.faults)
        return
    yield Read(read_document(checked.document, source if options.inline_media else None), faults=checked.faults)


def read_document(document: Json, images: Source | None = None) -> Episode:
    """The episode of a document without errors; images beside `images`, if it is given, become data URLs."""
    notes, extra = opened(document.get("extra"), RootNotes)
    main = _thread(document, extra, "", images)
    rollout = notes.rollout or {}
    reward, truncated = rollout.get("reward"), rollout.get("truncated")
    return Episode(
        contract=CONTRACT,
        main=main,
        rollout_id=text_at(rollout, "rollout_id") or gym_rollout_id(extra),
        reward=reward if isinstance(reward, int | float) and not isinstance(reward, bool) else None,
        request=notes.request,
        response=notes.response,
        row=_row(rollout),
        truncated=truncated if isinstance(truncated, bool) else None,
        version=text_at(document, "schema_version"),
        omitted=tuple(_omitted(notes.omitted or [], images)),
        blanks=blanks_of(document) or None,
    )


def gym_rollout_id(extra: Json | None) -> str | None:
    """The rollout that an export of NeMo Gym names (contracts.md 9.4)."""
    return text_at(object_in(object_in((extra or {}).get("nemo_gym")).get("source")), "rollout_id")


def _row(rollout: Object) -> Json | None:
    kept = {name: rollout[name] for name in ROW_FIELDS if name in rollout}
    return {**kept, **object_in(rollout.get("row"))} or None


def _thread(value: Json, extra: Json | None, place: str, images: Source | None) -> Thread:
    totals = value.get("final_metrics")
    return Thread(
        turns=tuple(
            _step(step, f"{place}{pointer('steps', at)}", images) for at, step in enumerate(objects_in(value["steps"]))
        ),
        agent=read_agent(object_in(value["agent"])),
        trajectory_id=text_at(value, "trajectory_id"),
        session_id=text_at(value, "session_id"),
        totals=read_totals(totals) if isinstance(totals, dict) else None,
        notes=text_at(value, "notes"),
        continued=text_at(value, "continued_trajectory_ref"),
        subagents=tuple(
            _thread(member, _own(member.get("extra")), f"{place}{pointer('subagent_trajectories', at)}", images)
            for at, member in enumerate(objects_in(value.get("subagent_trajectories")))
        ),
        extra=extra,
    )


def _omitted(steps: list[object], images: Source | None) -> Iterator[Turn]:
    """The answers of calls that make no step, as far as somebody has not broken them."""
    for at, step in enumerate(steps):
        if not has_errors(check_object(step, "step", Place())):
            yield _step(step, pointer("extra", "ng_capture", "omitted", at), images)


def _own(extra: object) -> Json | None:
    return extra if isinstance(extra, dict) else None


def _step(step: object, place: str, images: Source | None) -> Turn:
    return read_step(object_in(step), place, images)
