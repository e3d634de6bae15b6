"""Finished rows read (contracts.md 3.4): steps by what Gym saw where it saw them, else by the order of items."""

from collections.abc import Iterator

from ng_capture.contracts.dialects.fields import text_in
from ng_capture.contracts.dialects.responses import instructions, splits_think
from ng_capture.contracts.documents import Found, values_in
from ng_capture.contracts.episode import Agent, Episode, Json, Thread, Totals
from ng_capture.contracts.gym.agents import Agents, agents_told
from ng_capture.contracts.gym.evidence import told_by_calls
from ng_capture.contracts.gym.export import gym_extra
from ng_capture.contracts.gym.export_checks import export_faults
from ng_capture.contracts.gym.rules import fault
from ng_capture.contracts.gym.trajectory import captured_calls, read_trajectory
from ng_capture.contracts.interface import Options, Profile, Read, Refused
from ng_capture.contracts.items.parts import without
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.responses.conversation import (
    Conversation,
    completed,
    conversation_of,
    envelope_in,
    parameters_in,
    side_of,
    thread_extra,
    tools_in,
)
from ng_capture.contracts.sources import Source
from ng_capture.records.json_text import object_in
from ng_capture.records.rollout_row import BadRow, number, rollout_id_of
from ng_capture.records.usage import UNKNOWN_USAGE

PARAMETERS, RESPONSE, NOTES = "responses_create_params", "response", "ng_capture"


def read_rows(source: Source, options: Options) -> Iterator[Read | Refused]:
    """One outcome for each row."""
    for found in values_in(source, "gym"):
        yield read_row(found, options)


def read_row(found: Found, options: Options) -> Read | Refused:
    """The episode of a row, or why there is none."""
    row = found.value
    if not found.certain:
        return Refused(found.faults, place=found.place)
    if not isinstance(row, dict):
        refusal = fault("gym.row.type", "a row is a JSON object", line=found.line)
        return Refused((*found.faults, refusal), place=found.place)
    if options.profile is Profile.STRICT:
        refusals = tuple(export_faults(row, options.agent_version, found.line))
        if refusals:
            return Refused((*found.faults, *refusals), place=found.place)
    read = _Row(row, options)
    if not read.conversation.turns:
        refusal = fault("gym.row.empty", "neither input nor output: nothing to convert", line=found.line)
        return Refused((*found.faults, refusal), place=found.place)
    return Read(read.episode, read.losses, found.faults, found.place)


class _Row:
    """A row while it is read."""

    def __init__(self, row: Json, options: Options) -> None:
        self._row, self._options = row, options
        self._request, self._response = (
            side_of(row.get(PARAMETERS), f"/{PARAMETERS}"),
            side_of(row.get(RESPONSE), "/response"),
        )
        self._trajectory = read_trajectory(row.get("ng_trajectory"))
        self._agents = agents_told(self._trajectory, splits_think(options)) if self._trajectory is not None else None
        self.conversation = self._seen() if self._agents is None else self._told(self._agents)

    def _seen(self) -> Conversation:
        """The conversation of request and response; the calls that Gym captured tell its steps where they fit."""
        captured = captured_calls(self._row.get("ng_model_call_capture"))
        calls = captured or (self._trajectory.calls if self._trajectory is not None else ())
        return conversation_of(self._request, self._response, self._options, lambda made: told_by_calls(made, calls))

    def _told(self, agents: Agents) -> Conversation:
        """The conversation as Gym saw the agent have it."""
        before = instructions(self._request.value, self._request.place)
        return completed(before, agents.losses, agents.main, self._response)

    @property
    def losses(self) -> tuple[Loss, ...]:
        return self.conversation.losses

    @property
    def episode(self) -> Episode:
        row, request = self._row, self._request.value
        return Episode(
            contract="gym",
            main=self._main(object_in(row.get(NOTES))),
            rollout_id=self._rollout_id(),
            reward=number(row.get("reward")),
            request=parameters_in(request),
            response=envelope_in(self._response.value),
            row=without(row, NOTES, *(side for side in (PARAMETERS, RESPONSE) if object_in(row.get(side)))),
            truncated=True if self._response.value.get("status") == "incomplete" else None,
        )

    def _main(self, noted: Json) -> Thread:
        # Gym's export adds up what the calls used, whatever the response says
        used, strict = self.conversation.call.usage, self._options.profile is Profile.STRICT
        name = text_in(object_in(self._row.get("agent_ref")), "name")
        offered = tools_in(self._request.value, self._response.value)
        return Thread(
            turns=self.conversation.turns,
            agent=Agent(name, text_in(noted, "agent_version"), self.conversation.model, offered),
            session_id=text_in(noted, "session_id"),
            trajectory_id=text_in(noted, "trajectory_id"),
            totals=None if used == UNKNOWN_USAGE or strict else Totals(used, extra=self.conversation.call.usage_extra),
            notes=text_in(noted, "notes"),
            subagents=self._agents.subagents if self._agents is not None else (),
            extra=self._extra(strict) or None,
        )

    def _extra(self, strict: bool) -> Json:
        extra = thread_extra(self.conversation, self._request.value, self._response.value)
        if self._agents is None or self._trajectory is None:
            return extra
        return {"nemo_gym": gym_extra(self._row, self._trajectory, self.conversation.turns, strict), **extra}

    def _rollout_id(self) -> str | None:
        try:
            named = rollout_id_of(self._row)
        except BadRow:
            named = None
        told = (object_in(self._row.get(key)) for key in ("ng_trajectory", "ng_model_call_capture"))
        return named or next((name for each in told if (name := text_in(each, "rollout_id"))), None)
