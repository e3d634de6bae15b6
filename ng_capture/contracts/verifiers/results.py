"""A row of results.jsonl: prompt and completion, with the calls of its trajectory where it has one (contracts.md 6)."""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ng_capture.contracts.dialects.chat import CHAT
from ng_capture.contracts.dialects.fields import text_in
from ng_capture.contracts.dialects.interface import Asked
from ng_capture.contracts.episode import Agent, Episode, Json, Thread, Tool, Totals, Turn
from ng_capture.contracts.interface import Options, Read, Refused
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.contracts.verifiers.numbers import number
from ng_capture.contracts.verifiers.rules import fault
from ng_capture.contracts.verifiers.trajectory import with_calls
from ng_capture.records.json_text import decode_exact, object_in
from ng_capture.records.usage import UNKNOWN_USAGE, Usage, count

_CONVERSATION = frozenset({"prompt", "completion", "trajectory"})
_MESSAGE = re.compile(r"/messages/(\d+)", re.ASCII)


class Parts(msgspec.Struct, frozen=True):
    """The messages of a row in its two parts."""

    prompt: list[object]
    completion: list[object]

    def place(self, path: str) -> str:
        """A place in all messages as one in the row."""
        at = _message(path)
        part, own = ("prompt", at) if at < len(self.prompt) else ("completion", at - len(self.prompt))
        return pointer(part, own) + _MESSAGE.sub("", path, count=1)


def is_row(value: object) -> bool:
    """True for a row of results: a conversation in two parts, and what it was worth or which example it is of."""
    row = object_in(value)
    return "prompt" in row and "completion" in row and not row.keys().isdisjoint({"reward", "example_id", "id"})


def read_row(row: Json, line: int, attempt: int, metadata: Json | None, options: Options) -> Read | Refused:
    """The episode of a row; `attempt` is how many rows of its example came before, `metadata` what stands beside."""
    parts = Parts(_messages(row.get("prompt"), "user"), _messages(row.get("completion"), "assistant"))
    faults, place = list(_faults(row)), f"line {line}"
    if not parts.prompt and not parts.completion:
        faults.append(fault("verifiers.conversation.empty", "neither prompt nor completion"))
        return Refused(_in_line(faults, line), place=place)
    told = _turns(parts, options)
    followed = with_calls(told.turns, row.get("trajectory"), options)
    losses = (*told.losses, *_missing(row, parts), *followed.losses)
    episode = _episode(row, attempt, metadata, followed.turns)
    return Read(episode, losses, _in_line((*faults, *followed.faults), line), place)


def _episode(row: Json, attempt: int, metadata: Json | None, turns: tuple[Turn, ...]) -> Episode:
    meant, truncated = metadata or {}, row.get("is_truncated")
    rest = {key: value for key, value in row.items() if key not in _CONVERSATION}
    return Episode(
        contract="verifiers",
        main=Thread(turns, Agent(model=text_in(meant, "model"), tools=_tools(row)), totals=_totals(row)),
        rollout_id=_rollout_id(row, attempt),
        reward=number(row.get("reward")),
        request=_request(meant),
        row=rest if metadata is None else {**rest, "metadata": metadata},
        truncated=truncated if isinstance(truncated, bool) else None,
    )


def _in_line(faults: Iterable[Fault], line: int) -> tuple[Fault, ...]:
    return tuple(msgspec.structs.replace(each, line=line) for each in faults)


def _missing(row: Json, parts: Parts) -> Iterator[Loss]:
    if not parts.completion:
        yield Loss("conversation_unavailable", "/completion")
    if number(row.get("reward")) is None:
        yield Loss("reward_unavailable", "/reward")


def example_of(row: Json) -> object:
    """Which example a row is of; older files have another name for it."""
    example = row.get("example_id", row.get("id"))
    return example if isinstance(example, int | str) else None


def _faults(row: Json) -> Iterator[Fault]:
    for key in ("prompt", "completion"):
        if not isinstance(row.get(key), str | list):
            yield fault("verifiers.field.type", f"{key} is a text or a list of messages", pointer(key))
    if row.get("reward") is not None and number(row["reward"]) is None:
        yield fault("verifiers.field.type", "reward is a number", "/reward")
    if row.get("trajectory") is not None and not isinstance(row["trajectory"], list):
        yield fault("verifiers.field.type", "trajectory is a list of steps", "/trajectory")


def _messages(value: object, role: str) -> list[object]:
    """The messages of a part; a bare text is all that one side said."""
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value else []
    return value if isinstance(value, list) else []


def _turns(parts: Parts, options: Options) -> Asked:
    """The turns of both parts; what the model says in the completion is this rollout's own."""
    messages = [*parts.prompt, *parts.completion]
    asked = CHAT.asked({"messages": messages}, options)
    turns = list[Turn]()
    for turn in asked.turns:
        at = _message(turn.place)
        own = at >= len(parts.prompt) and object_in(messages[at]).get("role") == "assistant"
        turns.append(msgspec.structs.replace(turn, copied=turn.copied and not own, place=parts.place(turn.place)))
    moved = (msgspec.structs.replace(loss, path=parts.place(loss.path)) for loss in asked.losses)
    copied = (Loss("copied_context", turn.place) for turn in turns if turn.copied)
    return Asked(tuple(turns), losses=(*moved, *copied))


def _message(path: str) -> int:
    """Which message a place is in."""
    found = _MESSAGE.match(path)
    return int(found[1]) if found else 0


def _tools(row: Json) -> tuple[Tool, ...] | None:
    """The tools offered: in the row, or among what the environment knows, which may be JSON text."""
    info = row.get("info")
    if isinstance(info, str):
        try:
            info = decode_exact(info.encode("utf-8", "surrogatepass"))
        except ValueError:
            info = None
    offered = row.get("tool_defs") or object_in(info).get("oai_tools")
    return CHAT.asked({"tools": offered}, Options()).tools if isinstance(offered, list) else None


def _totals(row: Json) -> Totals | None:
    """Tokens of the rollout, which the library sums as floats."""
    usage = object_in(row.get("token_usage"))
    told = Usage(tokens_in=_whole(usage.get("input_tokens")), tokens_out=_whole(usage.get("output_tokens")))
    return None if told == UNKNOWN_USAGE else Totals(told)


def _whole(value: object) -> int | None:
    return count(int(value) if isinstance(value, float) and value.is_integer() else value)


def _rollout_id(row: Json, attempt: int) -> str | None:
    """The example and which attempt at it this is, as Gym names rollouts."""
    example = example_of(row)
    return None if example is None else f"{example}-{attempt}"


def _request(metadata: Mapping[str, object]) -> Json | None:
    """How the model was asked, as far as it is known."""
    sampling = object_in(metadata.get("sampling_args"))
    told = {key: value for key, value in sampling.items() if value is not None}
    model = text_in(metadata, "model")
    return ({"model": model} if model is not None else {}) | told or None
