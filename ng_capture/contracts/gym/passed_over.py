"""What Gym's mapping of Harbor trajectories passes over, and what it makes up (contracts.md 3.1, its loss list)."""

from collections.abc import Callable, Iterator

from ng_capture.contracts.episode import Episode, Role, Turn
from ng_capture.contracts.gym.left_out import left_out, unnamed
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.unplaced import row_losses
from ng_capture.records.usage import UNKNOWN_USAGE


def passed_over(episode: Episode) -> Iterator[Loss]:
    """The losses that no step of the mapping tells."""
    yield from left_out(episode, mapped=True)
    yield from row_losses(episode)
    yield from unnamed(episode)
    asked = sorted(name for name, value in (episode.request or {}).items() if value is not None)
    if asked:
        yield Loss("request_fields_dropped", detail=", ".join(asked))
    yield from _steps(episode.main.turns)
    totals = episode.main.totals.usage if episode.main.totals is not None else UNKNOWN_USAGE
    if totals.partial:
        yield Loss("usage_unknown")
    if episode.main.subagents:
        yield Loss("subagent_dropped", count=len(episode.main.subagents))
    if episode.main.agent.tools:
        yield Loss("tools_dropped", count=len(episode.main.agent.tools))


def _steps(turns: tuple[Turn, ...]) -> Iterator[Loss]:
    leading = True
    for turn in turns:
        leading = leading and turn.role == Role.USER
        if turn.role not in (Role.ASSISTANT, Role.USER) or (turn.role == Role.USER and not leading):
            yield Loss("step_fields_dropped", turn.place, detail=f"a step of the {turn.role}")
    agents = [turn for turn in turns if turn.role == Role.ASSISTANT]
    for code, is_lost in _OF_AGENTS.items():
        found = [turn for turn in agents if is_lost(turn)]
        if found:
            yield Loss(code, found[0].place, len(found))


def _is_sealed(turn: Turn) -> bool:
    return any(thought.signature is not None or thought.encrypted is not None for thought in turn.thoughts)


_OF_AGENTS: dict[str, Callable[[Turn], bool]] = {
    "no_model_call": lambda turn: turn.model_calls == 0,
    "finish_reason_dropped": lambda turn: turn.call is not None and turn.call.finish_reason is not None,
    "cache_write_dropped": lambda turn: turn.call is not None and bool(turn.call.usage.cache_creation_tokens),
    "is_error_dropped": lambda turn: any(result.is_error for result in turn.results),
    "reasoning_signature_dropped": _is_sealed,
    "reasoning_segments_joined": lambda turn: sum(len(thought.texts) for thought in turn.thoughts) > 1,
    "reasoning_summary_dropped": lambda turn: any(thought.content and thought.summary for thought in turn.thoughts),
}
"""What the mapping does to steps of the agent without a word."""
