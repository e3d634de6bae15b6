"""What a broken edge alone costs: the trained tokens of each policy, all other edges mended, with it and without."""

from collections.abc import Collection, Mapping

from ng_capture.chains.analysis import Analysis, arrange
from ng_capture.chains.cycles import calls_in_cycles
from ng_capture.chains.links import Links, mended_links
from ng_capture.verdicts.judge import Judgement, planned_rows
from ng_capture.verdicts.judging import Policy
from ng_capture.verdicts.policies import trained_tokens


def tokens_lost(judgement: Judgement, parents: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """By call and policy; `parents` has the parent that every call with a broken edge should have extended.

    A rollout that is masked for another reason loses nothing more by a broken edge.
    """
    mended = mended_links(judgement.analysis.calls, parents)
    whole = {policy: _trained(judgement, _mended(judgement, mended, set(parents)), policy) for policy in Policy}
    lost = {}
    for call in parents:
        broken = _mended(judgement, mended, set(parents) - {call})
        lost[call] = {policy.value: whole[policy] - _trained(judgement, broken, policy) for policy in Policy}
    return lost


def _mended(judgement: Judgement, mended: Links, calls: Collection[str]) -> Analysis:
    analysis = judgement.analysis
    links = analysis.links | {call: mended[call] for call in calls}
    # links that would run in a circle mend nothing
    for call in calls_in_cycles({call: link.parent for call, link in links.items()}) & set(calls):
        links[call] = analysis.links[call]
    return arrange(analysis.calls, links, analysis.attribution)


def _trained(judgement: Judgement, analysis: Analysis, policy: Policy) -> int:
    rows = planned_rows(judgement.snapshot, analysis, judgement.completeness, policy)
    return sum(trained_tokens(analysis, call) for row in rows for call in row.trained)
