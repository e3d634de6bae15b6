"""What records, tables and the evaluation view do not hold of an episode."""

from collections.abc import Iterator, Mapping

from ng_capture.contracts.episode import Episode, Thread, Turn
from ng_capture.contracts.interface import Feature
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.unplaced import response_fields, row_losses

UNHELD: Mapping[str, Feature | None] = {
    "conversation_dropped": None,
    "tokens_dropped": Feature.COPIED,
    "tools_dropped": Feature.TOOLS,
    "request_fields_dropped": Feature.REQUEST,
    "reward_dropped": Feature.REWARD,
    "row_fields_dropped": Feature.ROW,
    "metadata_dropped": Feature.METADATA,
}
"""The codes of these losses."""


def unheld(episode: Episode) -> Iterator[Loss]:
    """The losses that a list of calls has, whatever it tells of each."""
    for thread in _threads(episode.main):
        for turn in thread.turns:
            if _said_to_the_model(turn):
                yield Loss("conversation_dropped", turn.place)
            if turn.copied and turn.call is not None and turn.call.tokens is not None:
                yield Loss("tokens_dropped", turn.place, detail="history that another call made")
    if episode.main.agent.tools:
        yield Loss("tools_dropped", count=len(episode.main.agent.tools))
    for name, value in sorted((episode.request or {}).items()):
        if name != "model" and value is not None:
            yield Loss("request_fields_dropped", detail=name)
    if episode.reward is not None:
        yield Loss("reward_dropped")
    yield from row_losses(episode, named=True)
    for name in (*_metadata(episode.main), *response_fields(episode)):
        yield Loss("metadata_dropped", detail=name)


def _threads(thread: Thread) -> Iterator[Thread]:
    yield thread
    for each in thread.subagents:
        yield from _threads(each)


def _said_to_the_model(turn: Turn) -> bool:
    """True for words that no model of this episode wrote: of users, of tools, of steps without a model."""
    own = turn.fresh and turn.model_calls != 0
    return bool((turn.content and not own) or any(result.content for result in turn.results))


def _metadata(thread: Thread) -> Iterator[str]:
    costs = (turn.call.cost_usd for turn in thread.turns if turn.call is not None)
    told = {
        "agent": thread.agent.name or thread.agent.version or thread.agent.extra,
        "notes": thread.notes,
        "continued_trajectory_ref": thread.continued,
        # what we noted ourselves: the calls are there, and a marker tells of those that are lost
        "extra": (thread.extra or {}).keys() - {"ng_capture"},
        "cost": any(cost is not None for cost in (thread.totals and thread.totals.cost_usd, *costs)),
    }
    return (name for name, value in told.items() if value)
