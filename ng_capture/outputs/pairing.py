"""Rebuild preference pairs: groups are gone through first, then each pair is read again where it is written."""

from collections import Counter
from collections.abc import Callable

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.natural_order import natural_key
from ng_capture.outputs.export.cutting import LeftOut
from ng_capture.outputs.export.made import Made
from ng_capture.outputs.export.text.pairs import Candidate, Pair, Pairing, Side, candidate, pair_line, side_of
from ng_capture.outputs.rebuilding import Rebuild
from ng_capture.outputs.rows_file import decoded
from ng_capture.outputs.verify import VerifyTask, judge_task
from ng_capture.verdicts.judge import Judgement


class Place(msgspec.Struct, frozen=True, eq=False):
    """Where a rollout stands among the pairs: in one with `partner`, or nowhere; `left_out` is that of its group."""

    pair: Pair | None = None
    partner: VerifyTask | None = None
    left_out: LeftOut | None = None


NOWHERE = Place()


def candidate_of(job: VerifyTask, how: Rebuild) -> Candidate | None:
    """A rollout that can stand in a pair; None for any other, also for one that cannot be read."""
    try:
        side = _side(judge_task(job), job, how)
    except SurroundingsError:
        return None
    return candidate(job.rollout_id, side) if isinstance(side, Side) else None


def placed(pairing: Pairing, job: VerifyTask, find: Callable[[str], VerifyTask]) -> Place:
    """Where a rollout stands; `find` gives the task of its partner."""
    pair = pairing.pairs.get(job.rollout_id)
    if pair is None:
        return Place(left_out=pairing.left_out.get(job.rollout_id))
    return Place(pair, find(pair.other(job.rollout_id)))


def make_pair(judgement: Judgement, job: VerifyTask, how: Rebuild, place: Place) -> Made:
    """What is written of a rollout: its pair at the first of both; raises TooLong and SurroundingsError."""
    side = _side(judgement, job, how)
    if place.pair is None or place.partner is None:
        return _alone(side, place)
    partner = place.partner
    if not isinstance(side, Side):
        raise SurroundingsError(f"{job.rollout_id}: changed while it was read")
    made = Made(trained=side.trained, untrained=side.untrained, partner=partner.rollout_id)
    if natural_key(partner.rollout_id) < natural_key(job.rollout_id):
        return made
    other = _side(judge_task(partner), partner, how)
    if not isinstance(other, Side) or (other.prompt, other.text.tools) != (side.prompt, side.text.tools):
        raise SurroundingsError(f"{partner.rollout_id}: changed while it was read")
    both = (side, other) if place.pair.chosen == job.rollout_id else (other, side)
    return msgspec.structs.replace(made, lines=[[pair_line(place.pair, *both)]])


def _alone(side: Side | LeftOut | None, place: Place) -> Made:
    """Nothing of a rollout that stands in no pair, and why."""
    if side is None:
        return Made(trained=0)
    if isinstance(side, LeftOut):
        return Made(left_out=(side,), trained=0, untrained=side.untrained)
    reason = "unpaired" if place.left_out is None else place.left_out.reason
    told = () if place.left_out is None else (place.left_out,)
    return Made(left_out=told, trained=0, untrained=Counter(side.untrained) + Counter({reason: side.trained}))


def _side(judgement: Judgement, job: VerifyTask, how: Rebuild) -> Side | LeftOut | None:
    return side_of(judgement, decoded(job.row), job.files, how)
