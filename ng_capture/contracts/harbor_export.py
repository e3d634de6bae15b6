"""Harbor's conversation export is read: a row a step of an agent, with all that was said before (contracts.md 1).

A row repeats the rows before it, so that only the rows that no other one goes on with become episodes. Every answer
counts once: in the agent whose row ends with it, else where it stands; elsewhere it is a copy.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ng_capture.contracts.careful_json import json_rules
from ng_capture.contracts.dialects.chat import CHAT
from ng_capture.contracts.dialects.fields import text_in
from ng_capture.contracts.documents import Found, values_in
from ng_capture.contracts.episode import Agent, Episode, Json, Role, Thread, Turn
from ng_capture.contracts.exchanges.reading import LINKING
from ng_capture.contracts.identity import content_digest
from ng_capture.contracts.interface import Contract, Feature, Head, Options, Read, Reader, Refused
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import Fault, pointer, table
from ng_capture.contracts.sources import Source
from ng_capture.records.json_text import object_in, printable

RULES = json_rules("harbor") | table("""
harbor.empty | error | the file holds no row
harbor.row | error | a row is an object with a list of conversations
harbor.conversation.empty | error | a row holds no message
harbor.field.type | warning | a field is of another type
""")
_MAIN, _SEEN = "main", "/messages"
_TEXTS = ("agent", "model", "run_id", "trial_name", "episode", "trace_source")
_TOLD = frozenset({"conversations", "conversations_sharegpt", "agent", "model"})
_GIVES = frozenset(Feature) - {
    *(Feature.SUBAGENTS, Feature.TIMES, Feature.USAGE, Feature.CACHE_WRITES, Feature.FINISH, Feature.REQUEST),
    *(Feature.TOOLS, Feature.SERVER_TOOLS, Feature.NO_MODEL, Feature.FAILED_RESULTS, Feature.SIGNATURES),
}
_LOSSES = frozenset({*LINKING, "copied_context", "reward_unavailable", "think_tags_split"})


class _Row(msgspec.Struct, frozen=True):
    """A row: where it stands, its messages, and for each a digest of all that was said up to it."""

    value: Json
    place: str
    pointer: str
    line: int | None
    messages: Sequence[object]
    heard: tuple[str, ...]
    faults: tuple[Fault, ...]

    @property
    def trial(self) -> tuple[str | None, str | None]:
        return text_in(self.value, "run_id"), text_in(self.value, "trial_name")

    @property
    def source(self) -> str:
        """Which agent of the trial was asked: the main one, or one that made a summary."""
        return text_in(self.value, "trace_source") or _MAIN


def _recognises(head: Head) -> bool:
    value = head.value[0] if isinstance(head.value, list) and head.value and not head.is_folder else head.value
    return _is_row(value) and not object_in(value).keys().isdisjoint({"trial_name", "episode", "run_id"})


def _is_row(value: object) -> bool:
    return isinstance(object_in(value).get("conversations"), list)


def read(source: Source, options: Options) -> Iterator[Read | Refused]:
    """One episode for each row that no other one goes on with."""
    trials = defaultdict[object, list[_Row]](list)
    found = 0
    for outcome in _rows(source):
        found += 1
        if isinstance(outcome, Refused):
            yield outcome
        else:
            trials[outcome.trial].append(outcome)
    if not found:
        yield Refused((_fault("harbor.empty", "no rows"),))
    for rows in trials.values():
        yield from _episodes(rows, options)


def validate(source: Source) -> Iterator[Fault]:
    """All faults of a file."""
    for outcome in _rows(source):
        yield from outcome.faults


HARBOR = Contract(
    "harbor",
    "Harbor's conversation export",
    "nothing; texts of an ATIF trajectory for a trainer, with the result of the trial",
    "`trial_name`, `trace_source` and `episode`",
    reader=Reader(_recognises, read, _GIVES, _LOSSES, validate),
)


def _rows(source: Source) -> Iterator[_Row | Refused]:
    """Every row, of lines or of one list of rows."""
    for found in values_in(source, "harbor"):
        if not found.certain:
            yield Refused(found.faults, place=found.place)
        elif isinstance(found.value, list):
            for at, value in enumerate(found.value):
                yield _row(value, found, f"row {at}", pointer(at), () if at else found.faults)
        else:
            yield _row(found.value, found, found.place, "", found.faults)


def _row(value: object, found: Found, place: str, path: str, odd: tuple[Fault, ...]) -> _Row | Refused:
    row, messages = object_in(value), object_in(value).get("conversations")
    if not isinstance(messages, list):
        wrong = _fault("harbor.row", "no object with a list of conversations", path, found.line)
        return Refused((*odd, wrong), place=place)
    if not messages:
        wrong = _fault("harbor.conversation.empty", "nothing was said", f"{path}/conversations", found.line)
        return Refused((*odd, wrong), place=place)
    faults = (
        _fault("harbor.field.type", f"{key} is text", f"{path}/{key}", found.line)
        for key in _TEXTS
        if row.get(key) is not None and not isinstance(row[key], str)
    )
    return _Row(row, place, path, found.line, messages, tuple(_heard(messages)), (*odd, *faults))


def _heard(messages: Iterable[object]) -> Iterator[str]:
    digest = ""
    for message in messages:
        digest = content_digest([digest, message])
        yield digest


def _episodes(rows: Sequence[_Row], options: Options) -> Iterator[Read]:
    """The episodes of a trial: of each agent the rows that none of its other rows goes on with."""
    begun = {(row.source, digest) for row in rows for digest in row.heard[:-1]}
    counting = _Counting(rows)
    for row in rows:
        if (row.source, row.heard[-1]) not in begun:
            yield _read(row, counting, options)


class _Counting:
    """Which answers count where; each does so once."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._ends = {row.heard[-1]: row.source for row in reversed(rows)}
        self._answers = defaultdict[str, set[str]](set)
        for row in rows:
            self._answers[content_digest(row.messages[-1])].add(row.source)
        self._counted = set[str]()

    def counts(self, row: _Row, at: int) -> bool:
        """True, once, for the answer in that message of a row."""
        digest, own = row.heard[at], row.source
        if digest in self._counted or self._ends.get(digest, own) != own:
            return False
        if digest not in self._ends and self._answers.get(content_digest(row.messages[at]), set()) - {own}:
            return False
        self._counted.add(digest)
        return True


def _read(row: _Row, counting: _Counting, options: Options) -> Read:
    asked = CHAT.asked({"messages": row.messages}, options)
    turns, losses = list[Turn](), list[Loss]()

    def moved(path: str) -> str:
        return f"{row.pointer}/conversations{path.removeprefix(_SEEN)}"

    for turn in asked.turns:
        copied = turn.role is Role.ASSISTANT and not counting.counts(row, int(turn.place.split("/")[2]))
        told = msgspec.structs.replace(turn, copied=copied, place=moved(turn.place))
        turns.append(told)
        if copied:
            losses.append(Loss("copied_context", told.place))
    losses += (msgspec.structs.replace(loss, path=moved(loss.path)) for loss in asked.losses)
    reward = _reward(row.value)
    if reward is None:
        losses.append(Loss("reward_unavailable", f"{row.pointer}/result"))
    name = _name(row)
    agent = Agent(options.agent_name or text_in(row.value, "agent"), options.agent_version, text_in(row.value, "model"))
    episode = Episode(
        contract="harbor",
        main=Thread(
            tuple(turns),
            agent,
            trajectory_id=name,
            session_id=options.session_id or text_in(row.value, "run_id"),
        ),
        rollout_id=name,
        reward=reward,
        row={key: value for key, value in row.value.items() if key not in _TOLD},
    )
    return Read(episode, tuple(losses), row.faults, row.place)


def _name(row: _Row) -> str | None:
    """The trial, the agent where it is not the main one, and the step."""
    source = row.source if row.source != _MAIN else None
    parts = text_in(row.value, "trial_name"), source, text_in(row.value, "episode")
    return printable("-".join(part for part in parts if part)) or None


def _reward(row: Json) -> float | None:
    """The result of the trial where it is a number; Harbor writes it as text, for a failed trial the error's name."""
    try:
        told = float(str(row.get("result")))
    except ValueError:
        return None
    return told if isinstance(row["result"], str | int | float) and abs(told) < float("inf") else None


def _fault(rule: str, message: str, path: str = "", line: int | None = None) -> Fault:
    return Fault(rule, RULES[rule].severity, message, path, line)
