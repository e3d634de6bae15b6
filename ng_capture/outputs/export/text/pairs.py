"""`--to pairs`: the best and the worst verified rollout of each group, as offline preference trainers take them."""

import hashlib
import math
from collections.abc import Iterable, Mapping

import msgspec

from ng_capture.files.listing import RolloutFiles
from ng_capture.ingest.messages import Message
from ng_capture.outputs.export.cutting import LeftOut, left_out
from ng_capture.outputs.export.fitting import fitting
from ng_capture.outputs.export.text.chain_text import ChainText, chain_texts
from ng_capture.outputs.export.text.chat_form import in_chat_form
from ng_capture.outputs.rebuilding import Rebuild
from ng_capture.records.json_text import encode_json
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.judge import Judgement


class Side(msgspec.Struct, frozen=True):
    """A verified rollout that can stand in a pair, with its text."""

    group_id: str
    reward: float
    text: ChainText
    trained: int
    untrained: Mapping[str, int]

    @property
    def prompt(self) -> tuple[Message, ...]:
        """What stands before the first answer."""
        return self.text.turns[: self.text.prompt_length]


class Candidate(msgspec.Struct, frozen=True):
    """What is kept of a side until its group is known; `prompt` is a digest of what was asked first."""

    rollout_id: str
    group_id: str
    reward: float
    prompt: bytes


class Pair(msgspec.Struct, frozen=True):
    """Two rollouts of one group."""

    chosen: str
    rejected: str

    def other(self, rollout_id: str) -> str:
        """The one beside this one."""
        return self.rejected if rollout_id == self.chosen else self.chosen


class Pairing(msgspec.Struct, frozen=True):
    """The pairs by both of their rollouts; for a group that has none, why, by its best rollout."""

    pairs: Mapping[str, Pair]
    left_out: Mapping[str, LeftOut]


def side_of(
    judgement: Judgement, row: RolloutRow | None, files: RolloutFiles | None, how: Rebuild
) -> Side | LeftOut | None:
    """A rollout as a side of a pair, or why it is none; None where it is masked. Raises TooLong, SurroundingsError."""
    flat, left = fitting(judgement, row, how)
    if not flat:
        return left[0] if left else None
    head = flat[0].head
    if head.group_id is None:
        return left_out(flat[0], "group_missing", "its finished row names no group")
    if head.reward is None:
        return left_out(flat[0], "reward_missing", "pairs needs one")
    text = chain_texts(judgement, files, flat[:1])[0]
    return (
        text
        if isinstance(text, LeftOut)
        else Side(head.group_id, head.reward, text, flat[0].trained, flat[0].untrained)
    )


def candidate(rollout_id: str, side: Side) -> Candidate:
    """What is kept of it."""
    prompt = hashlib.sha256(msgspec.json.encode((side.prompt, side.text.tools))).digest()
    return Candidate(rollout_id, side.group_id, side.reward, prompt)


def paired(candidates: Iterable[Candidate], min_gap: float | None) -> Pairing:
    """The best and the worst of each group, the first of equal ones; candidates come in natural order of their ids."""
    best: dict[str, Candidate] = {}
    worst: dict[str, Candidate] = {}
    for each in candidates:
        if each.reward > best.setdefault(each.group_id, each).reward:
            best[each.group_id] = each
        if each.reward < worst.setdefault(each.group_id, each).reward:
            worst[each.group_id] = each
    pairs: dict[str, Pair] = {}
    left_out: dict[str, LeftOut] = {}
    for group_id, chosen in best.items():
        rejected = worst[group_id]
        if not _apart(chosen.reward - rejected.reward, min_gap):
            gap = f"group {group_id}: {chosen.reward:g} and {rejected.reward:g}"
            left_out[chosen.rollout_id] = LeftOut("reward_gap_small", gap)
        elif chosen.prompt != rejected.prompt:
            ids = f"{chosen.rollout_id} and {rejected.rollout_id}"
            left_out[chosen.rollout_id] = LeftOut("prompts_differ", f"group {group_id}: {ids}")
        else:
            pair = Pair(chosen.rollout_id, rejected.rollout_id)
            pairs |= {pair.chosen: pair, pair.rejected: pair}
    return Pairing(pairs, left_out)


def _apart(gap: float, least: float | None) -> bool:
    return gap > 0 and (least is None or gap >= least or math.isclose(gap, least))


def pair_line(pair: Pair, chosen: Side, rejected: Side) -> bytes:
    """The row of a pair."""
    row = {
        "prompt": [in_chat_form(turn) for turn in chosen.prompt],
        "chosen": _completion(chosen),
        "rejected": _completion(rejected),
        "tools": chosen.text.tools,
        "chosen_reward": chosen.reward,
        "rejected_reward": rejected.reward,
        "group_id": chosen.group_id,
        "chosen_rollout_id": pair.chosen,
        "rejected_rollout_id": pair.rejected,
    }
    return encode_json(row)


def _completion(side: Side) -> list[dict[str, object]]:
    return [in_chat_form(turn) for turn in side.text.turns[side.text.prompt_length :]]
