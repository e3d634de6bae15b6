"""The model calls of an episode, whatever contract it is of, each with the turn that it made and its turn's number."""

from collections.abc import Iterator

import msgspec

from ng_capture.contracts.episode import Episode, ModelCall, Role, Thread, Turn
from ng_capture.records.json_text import object_in


class Made(msgspec.Struct, frozen=True):
    """A turn that a model made, in its thread.

    `before` is the call that made the turn before it, `spoken` tells that the model was shown something that a model
    said; `turn_index` counts what users said before it, from 0, None where nobody said anything. `omitted`: the call
    makes no step.
    """

    turn: Turn
    thread: Thread
    before: Turn | None = None
    spoken: bool = False
    turn_index: int | None = None
    omitted: bool = False

    @property
    def call(self) -> ModelCall:
        return self.turn.call or ModelCall()


def lost_calls(episode: Episode) -> bool:
    """True where the source says that calls of the rollout are lost, or could not be read."""
    own = object_in((episode.main.extra or {}).get("ng_capture"))
    return bool(own.get("gaps"))


def calls_in(episode: Episode) -> list[Made]:
    """Every call, in the order in which they were made as far as that is known, else as the turns stand."""
    made = [*_in_thread(episode.main), *(Made(turn, episode.main, omitted=True) for turn in episode.omitted)]
    if all(each.call.index is not None for each in made):
        made.sort(key=lambda each: each.call.index or 0)
    return made


def _in_thread(thread: Thread) -> Iterator[Made]:
    before: Turn | None = None
    spoken, users = False, 0
    for turn in thread.turns:
        if (turn.extra or {}).get("context_management") is not None:
            before, spoken, users = None, False, 0
        elif turn.role is Role.USER:
            users += 1
        elif turn.role is Role.ASSISTANT:
            if turn.fresh and turn.model_calls != 0:
                yield Made(turn, thread, before, spoken, users - 1 if users else None)
                before = turn
            spoken = True
    for each in thread.subagents:
        yield from _in_thread(each)
