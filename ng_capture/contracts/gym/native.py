"""The whole episode as a row (contracts.md 3.6, profile native)."""

from collections.abc import Iterator, Sequence

import msgspec

from ng_capture import __version__
from ng_capture.contracts.episode import Episode, Json, Role, Text, Thread, Turn
from ng_capture.contracts.gym.envelope import (
    envelope_of,
    new_response,
    only_response_id,
    same_response,
    written_parameters,
    written_tools,
)
from ng_capture.contracts.gym.left_out import left_out
from ng_capture.contracts.gym.terminus import commands_of
from ng_capture.contracts.gym.usage import count_usage
from ng_capture.contracts.identity import made_id
from ng_capture.contracts.interface import Options, Written
from ng_capture.contracts.items.turns import HISTORY_ORDER, ORDER, OUTPUT_FROM, TOOLS_FROM
from ng_capture.contracts.items.writing import Writing
from ng_capture.contracts.losses import Loss, merged
from ng_capture.records.json_text import encode_json, object_in
from ng_capture.records.rollout_row import number

_OWN = ("gym", "responses")


class Pair(msgspec.Struct, frozen=True):
    """A request and its response, None for one that was not there when they were read, and what they do not hold."""

    request: Json | None
    response: Json | None
    losses: tuple[Loss, ...]


def write_row(episode: Episode, options: Options) -> Written:
    """One row, or with `subagents` a further one for each embedded trajectory."""
    embedded = list(_embedded(episode))
    documents, losses = list[bytes](), list[Loss]()
    if embedded and not options.subagents:
        losses.append(Loss("subagent_dropped", count=len(embedded)))
    for each in (episode, *embedded) if options.subagents else (episode,):
        pair = pair_of(each, options)
        losses += (*left_out(each), *pair.losses)
        documents.append(encode_json(_row(each, pair, options, (*episode.losses, *losses))))
    return Written(tuple(documents), tuple(losses))


def pair_of(episode: Episode, options: Options) -> Pair:
    """The request up to the first fresh step, and all that comes from there as the response."""
    thread = episode.main
    seed = episode.rollout_id or thread.trajectory_id or thread.session_id or ""
    own = episode.contract in _OWN
    writing = Writing(seed, own)
    turns = list(_with_commands(thread.turns)) if options.terminus else thread.turns
    noted = object_in((thread.extra or {}).get("ng_capture"))
    border = _border(turns, noted.get(OUTPUT_FROM))
    request = written_parameters(episode.request, writing.losses.append)
    instructions = _instructions(turns[:border])
    if instructions is not None:
        request["instructions"] = instructions
        if isinstance(turns[0].content, tuple) and len(turns[0].content) > 1:
            writing.losses.append(Loss("parts_flattened", turns[0].place))
    asked, made = list[Json](), list[Json]()
    for at, turn in enumerate(turns):
        if turn.role == Role.EVENT:
            writing.losses.append(Loss("mark_dropped", turn.place))
        elif at >= border and turn.copied and (turn.content or turn.thoughts or turn.calls):
            writing.losses.append(Loss("step_fields_dropped", turn.place, detail="context that was copied again"))
        elif at > 0 or instructions is None:
            (asked if at < border else made).extend(writing.turn(at, turn, at >= border))
    request["input"] = _plain(turns[:border]) if own else None
    if request["input"] is None:
        request["input"] = _ordered(asked, noted.get(HISTORY_ORDER))
    tools = written_tools(thread.agent.tools, own, writing.losses.append)
    if tools and noted.get(TOOLS_FROM) != "response":
        request["tools"] = tools
    response = _response(episode, _ordered(made, noted.get(ORDER)), own, writing)
    absent = episode.request is None and request == {"input": []}
    return Pair(None if absent else request, response, tuple(writing.losses))


def _response(episode: Episode, output: list[Json], own: bool, writing: Writing) -> Json | None:
    envelope = envelope_of(episode, own)
    if own and envelope is None and not output:
        return None
    counted = count_usage(episode.main, envelope, own)
    writing.losses.extend(counted.losses)
    if envelope is not None:
        return same_response(episode, envelope, output, counted.usage)
    response_id = only_response_id(episode.main) or made_id("resp_", writing.seed, output)
    return new_response(episode, output, counted.usage, response_id, writing.losses.append)


def _plain(turns: Sequence[Turn]) -> str | None:
    """The input of a request that was no list but a text."""
    said = [turn for turn in turns if turn.extra is None]
    alone = said[0] if len(said) == 1 else None
    if alone is None or alone.role != Role.USER or alone.item is not None or not isinstance(alone.content, str):
        return None
    return alone.content


def _border(turns: Sequence[Turn], noted: object) -> int:
    """Where the output begins: at the first fresh turn, or before it, where it began so when it was read."""
    fresh = next((at for at, turn in enumerate(turns) if turn.fresh), len(turns))
    return noted if type(noted) is int and 0 <= noted < fresh else fresh


def _instructions(turns: Sequence[Turn]) -> str | None:
    """The text of a leading turn that was the instructions of a request."""
    first = turns[0] if turns else None
    if first is None or first.role != Role.SYSTEM or (first.extra or {}).get("role") != "instructions":
        return None
    if isinstance(first.content, tuple) and all(isinstance(part, Text) for part in first.content):
        # as Gym joins the blocks of a system text (contracts.md 4.1)
        return "\n".join(part.text for part in first.content if isinstance(part, Text) and part.text)
    return first.content if isinstance(first.content, str) else None


def _ordered(items: list[Json], order: object) -> list[Json]:
    """The items in the order in which they stood, where it is known of all of them."""
    known = isinstance(order, list) and all(type(place) is int for place in order)
    if not isinstance(order, list) or not known or sorted(order) != list(range(len(items))):
        return items
    return [item for _, item in sorted(zip(order, items, strict=True), key=lambda placed: placed[0])]


def _with_commands(turns: Sequence[Turn]) -> Iterator[Turn]:
    step = 0
    for turn in turns:
        if turn.role != Role.ASSISTANT:
            yield turn
            continue
        yield msgspec.structs.replace(turn, calls=commands_of(turn, step))
        step += 1


def _embedded(episode: Episode) -> Iterator[Episode]:
    """An episode for each sub-agent, however deep."""
    for thread in _threads(episode.main):
        yield Episode(episode.contract, thread, version=episode.version)


def _threads(thread: Thread) -> Iterator[Thread]:
    for each in thread.subagents:
        yield each
        yield from _threads(each)


def _row(episode: Episode, pair: Pair, options: Options, losses: Sequence[Loss]) -> Json:
    row: dict[str, object] = {
        **{key: value for key, value in (episode.row or {}).items() if key != "ng_capture"},
    }
    if pair.request is not None or "responses_create_params" not in row:
        row["responses_create_params"] = pair.request or {"input": []}
    if pair.response is not None:
        row["response"] = pair.response
    if episode.reward is not None and episode.reward != number(row.get("reward")):
        row["reward"] = episode.reward
    if episode.rollout_id is not None and episode.row is None:
        row["_ng_rollout_id"] = episode.rollout_id
    name = episode.main.agent.name or options.agent_name
    if name is not None and "agent_ref" not in row:
        row["agent_ref"] = {"type": "responses_api_agents", "name": name}
    return {**row, "ng_capture": {**_identity(episode.main), "conversion": _conversion(episode, options, losses)}}


def _identity(thread: Thread) -> Json:
    known = {
        "trajectory_id": thread.trajectory_id,
        "session_id": thread.session_id,
        "agent_version": thread.agent.version,
        "notes": thread.notes,
    }
    return {key: value for key, value in known.items() if value is not None}


def _conversion(episode: Episode, options: Options, losses: Sequence[Loss]) -> Json:
    return {
        "from": episode.contract,
        "to": "gym",
        "profile": options.profile.value,
        "version": __version__,
        "losses": msgspec.to_builtins(merged(losses)),
    }
