"""An episode as a request and a response: what came before the last call, and what it answered (contracts.md 4)."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from ng_capture.contracts.dialects.beside import fields_beside, fields_of_items, is_named
from ng_capture.contracts.dialects.fields import is_refusal
from ng_capture.contracts.dialects.finishes import Finish, finish_of
from ng_capture.contracts.dialects.spelled import encode_spelled
from ng_capture.contracts.episode import Episode, Json, ModelCall, Role, Thread, Turn
from ng_capture.contracts.interface import Feature, Options, Written
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.unplaced import response_fields, row_losses
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import UNKNOWN_USAGE

_OF_CALLS = ("capture", "atof")
"""Contracts that hold requests and responses of any dialect."""


class Pair(msgspec.Struct, frozen=True):
    """The turns of a request, and the turn that answers it; None where the last turn is no model's, or has results."""

    history: tuple[Turn, ...]
    answer: Turn | None

    @property
    def place(self) -> int:
        """The place of the answer among all turns."""
        return len(self.history)


def pair_of(thread: Thread) -> Pair:
    """The pair of a thread: only its last call has a response, all others are history in the request."""
    turns = tuple(turn for turn in thread.turns if turn.role != Role.EVENT)
    last = turns[-1] if turns else None
    if last is None or not last.fresh or last.results or last.model_calls == 0:
        return Pair(turns, None)
    return Pair(turns[:-1], _counted(thread, last))


def _counted(thread: Thread, answer: Turn) -> Turn:
    """The answer with the usage of the thread, where it is the one step that used it."""
    call = answer.call or ModelCall()
    if call.usage != UNKNOWN_USAGE or thread.totals is None or sum(turn.fresh for turn in thread.turns) != 1:
        return msgspec.structs.replace(answer, call=call)
    counted = msgspec.structs.replace(call, usage=thread.totals.usage, usage_extra=thread.totals.extra)
    return msgspec.structs.replace(answer, call=counted)


def finish_told(episode: Episode, answer: Turn) -> Finish | None:
    """Why the answer ended; a response of Responses says so only where it was cut short."""
    told = finish_of(answer.call.finish_reason) if answer.call is not None else None
    if told is not None:
        return told
    response = object_in(episode.response)
    if episode.truncated and "status" not in response:
        return None
    reason = object_in(response.get("incomplete_details")).get("reason")
    if isinstance(reason, str):
        return finish_of(reason)
    whole = answer.call is not None and answer.call.dialect == "responses"
    whole = whole or episode.contract in ("gym", "responses")
    return "stop" if whole and response.get("status") in (None, "completed") else None


def is_own(episode: Episode, dialect: str) -> bool:
    """True where the turns were read from requests and responses of one dialect: what they kept of those goes back."""
    told = {turn.call.dialect for turn in episode.main.turns if turn.call is not None and turn.call.dialect is not None}
    return episode.contract == dialect if not told else told == {dialect} and episode.contract in (dialect, *_OF_CALLS)


def threads_of(episode: Episode, options: Options) -> tuple[list[Episode], tuple[Loss, ...]]:
    """The episode, and with `subagents` one for each sub-agent however deep; else they are lost."""
    embedded = [Episode(episode.contract, thread) for thread in _embedded(episode.main)]
    if options.subagents or not embedded:
        return [episode, *embedded], ()
    return [episode], (Loss("subagent_dropped", count=len(embedded)),)


def written_threads(
    episode: Episode, options: Options, document: Callable[[Episode], tuple[Json, list[Loss]]]
) -> Written:
    """A document for each of `threads_of`, and what all of them lose."""
    episodes, losses = threads_of(episode, options)
    documents = list[bytes]()
    for each in episodes:
        told, found = document(each)
        documents.append(encode_spelled(told))
        losses = (*losses, *found)
    return Written(tuple(documents), losses)


def _embedded(thread: Thread) -> Iterator[Thread]:
    for each in thread.subagents:
        yield each
        yield from _embedded(each)


def left_out(episode: Episode, pair: Pair, *, own: bool = False, joined: bool = False) -> Iterator[Loss]:
    """What a request and a response have no place for, whatever their dialect.

    `own` tells that all that messages held goes back, `joined` that the rollout's id and its reward stand beside them.
    """
    thread = episode.main
    for code, turns in (
        ("usage_dropped", [turn for turn in pair.history if turn.call and turn.call.usage != UNKNOWN_USAGE]),
        ("finish_reason_dropped", [turn for turn in pair.history if turn.call and turn.call.finish_reason]),
        ("timestamps_dropped", [turn for turn in thread.turns if _timed(turn)]),
        ("mark_dropped", [turn for turn in thread.turns if turn.role == Role.EVENT]),
    ):
        if turns:
            yield Loss(code, turns[0].place, len(turns))
    yield from _of_steps(thread.turns, own=own)
    asked = [turn for turn in pair.history if is_named(turn.call) or (turn.call and turn.call.response_id)]
    asked += [] if pair.answer is None or not is_named(pair.answer.call) else [pair.answer]
    if asked:
        yield Loss("step_fields_dropped", asked[0].place, len(asked), "model_call")
    models = [turn for turn in pair.history if turn.call and turn.call.model not in (None, thread.agent.model)]
    if models:
        yield Loss("step_fields_dropped", models[0].place, len(models), "model_name")
    if episode.reward is not None and not joined:
        yield Loss("reward_dropped")
    if _totals_lost(thread, pair):
        yield Loss("usage_dropped", detail="the totals")
    yield from row_losses(episode, named=joined)
    names = [name for name, value in _unwritten(episode) if value and not (joined and name == "rollout_id")]
    if pair.answer is None and thread.agent.model and not (episode.request or {}).get("model"):
        names.append("model")
    names += response_fields(episode)
    if names:
        yield Loss("metadata_dropped", detail=", ".join(names))
    if episode.omitted:
        yield Loss("step_fields_dropped", count=len(episode.omitted), detail="calls that made no step")


def _totals_lost(thread: Thread, pair: Pair) -> bool:
    """True for totals that say more than the counts of the answer."""
    answer = pair.answer.call if pair.answer is not None else None
    told = answer.usage if answer is not None else UNKNOWN_USAGE
    totals = thread.totals
    if totals is None:
        return False
    counts = msgspec.structs.asdict(totals.usage).items()
    return totals.cost_usd is not None or any(each not in (None, getattr(told, name)) for name, each in counts)


def refusals(turns: Sequence[Turn]) -> Iterator[Loss]:
    """The loss of writing refusals as any other text."""
    found = [turn for turn in turns if is_refusal(turn)]
    if found:
        yield Loss("parts_flattened", found[0].place, len(found), "refusal")


def _timed(turn: Turn) -> bool:
    call = turn.call
    times = (call.started_at, call.completed_at, call.latency_ms, call.latency_ttft_ms) if call is not None else ()
    return turn.timestamp is not None or any(time is not None for time in times)


def _of_steps(turns: Sequence[Turn], *, own: bool) -> Iterator[Loss]:
    told: dict[str, list[Turn]] = {}
    for turn in turns:
        for name in (*_fields(turn), *(() if own else (*fields_beside(turn), *fields_of_items(turn)))):
            told.setdefault(name, []).append(turn)
    for name, found in told.items():
        yield Loss("step_fields_dropped", found[0].place, len(found), name)


def _fields(turn: Turn) -> Iterator[str]:
    if turn.call is not None and turn.call.cost_usd is not None:
        yield "cost"
    if turn.reasoning_effort is not None:
        yield "reasoning_effort"
    if (turn.extra or {}).keys() - {"role", "messages"}:
        yield "extra"
    if any(call.extra for call in turn.calls):
        yield "extra of calls"
    if any(result.extra for result in turn.results):
        yield "extra of results"
    if any(result.subagents for result in turn.results):
        yield "subagent_trajectory_ref"
    if turn.model_calls is not None and turn.model_calls > 1:
        yield "llm_call_count"


def _unwritten(episode: Episode) -> Iterator[tuple[str, object]]:
    thread = episode.main
    yield "rollout_id", episode.rollout_id
    yield "session_id", thread.session_id not in (None, episode.rollout_id)
    yield "trajectory_id", thread.trajectory_id
    yield "agent", thread.agent.name or thread.agent.version or thread.agent.extra
    yield "notes", thread.notes
    yield "continued", thread.continued
    yield "extra", thread.extra


LEFT_OUT: Mapping[str, Feature | None] = {
    "usage_dropped": Feature.USAGE,
    "finish_reason_dropped": Feature.FINISH,
    "timestamps_dropped": Feature.TIMES,
    "mark_dropped": Feature.OTHER_ITEMS,
    "step_fields_dropped": Feature.METADATA,
    "reward_dropped": Feature.REWARD,
    "row_fields_dropped": Feature.ROW,
    "metadata_dropped": Feature.METADATA,
    "subagent_dropped": Feature.SUBAGENTS,
}
"""The losses of `left_out` and `threads_of`, each with the feature without which it cannot happen."""

WRITTEN: Mapping[str, Feature | None] = {
    **LEFT_OUT,
    "call_id_unknown": None,
    "content_type_unsupported": Feature.OTHER_CONTENT,
    "developer_role": Feature.DEVELOPER,
    "item_type_mapped": Feature.OTHER_ITEMS,
    "link_ambiguous": Feature.UNLINKED_RESULTS,
    "link_by_position": Feature.UNLINKED_RESULTS,
    "media_omitted": Feature.MEDIA,
    "no_model_call": Feature.NO_MODEL,
    "output_unlinked": Feature.UNLINKED_RESULTS,
    "reasoning_segments_joined": Feature.SUMMARIES,
    "reasoning_summary_dropped": Feature.SUMMARIES,
    "request_fields_dropped": Feature.REQUEST,
    "tool_definition_not_function": Feature.SERVER_TOOLS,
}
"""The losses that both APIs may report of what an episode holds."""
