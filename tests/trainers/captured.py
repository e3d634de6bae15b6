"""What the trainers are given: two groups of two rollouts, every last answer ends with the model's stop token."""

from dataclasses import dataclass
from pathlib import Path

from tests.support.forge import Call, Forge, write_rows

END = 1
"""The stop token of the tiny model."""


@dataclass(frozen=True)
class Captured:
    """A rollout as it truly was, unshifted."""

    rollout_id: str
    group: int
    reward: float
    tokens: list[int]
    mask: list[int]
    log_probs: list[float]


def _turns(rollout_id: str, *turns: tuple[list[int], list[int]]) -> Forge:
    forge = Forge(rollout_id)
    call: Call | None = None
    for number, (added, generated) in enumerate(turns):
        call_id = f"{rollout_id}-{number}"
        call = forge.root(added, generated, id=call_id) if call is None else call.then(added, generated, id=call_id)
    return forge


_FORGES = (
    (1, 1.0, _turns("1-0", ([10, 11], [20, 21, END]), ([30, 31, 32], [22, END]))),
    (1, 0.0, _turns("1-1", ([10, 11], [23, END]))),
    (2, 0.25, _turns("2-0", ([12, 13, 14], [24, 25, 26, END]))),
    (2, 1.0, _turns("2-1", ([12, 13, 14], [27, END]), ([33], [28, 29, END]), ([34, 35], [20, END]))),
)


def _captured(group: int, reward: float, forge: Forge) -> Captured:
    mask: list[int] = []
    log_probs: list[float] = []
    for call in forge.calls:
        added = len(call.prompt) - len(mask)
        mask += [0] * added + [1] * len(call.generation)
        log_probs += [0.0] * added + call.log_probs
    return Captured(forge.rollout_id, group, reward, forge.calls[-1].full, mask, log_probs)


CAPTURED = tuple(_captured(*each) for each in _FORGES)


def write_store(directory: Path) -> None:
    """The rollouts, and their finished rows beside the directory; whole rewards are written without a point."""
    for _, _, forge in _FORGES:
        forge.write(directory)
    write_rows(
        directory.parent / "rows.jsonl",
        [
            {
                **forge.row(forge.calls[-1], reward=int(reward) if reward.is_integer() else reward),
                "_ng_task_index": group,
            }
            for group, reward, forge in _FORGES
        ],
    )
