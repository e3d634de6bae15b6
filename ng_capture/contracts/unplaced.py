"""What an episode holds of a finished row and of a response's envelope, for targets that have no place for it."""

from collections.abc import Iterator

from ng_capture.contracts.episode import Episode, Json
from ng_capture.contracts.losses import Loss

_SAID_ELSEWHERE = frozenset({"object", "model", "status", "incomplete_details", "output", "usage", "tools"})
"""Fields of an envelope that say what it is, or that calls and turns say."""
_NOTHING: tuple[object, ...] = (None, "", [], {})


def row_fields(episode: Episode, *, named: bool = False) -> list[str]:
    """The fields of a row that say something besides its reward, which is told by itself.

    `named` tells that the target has the rollout's id, so that what the id is made of is not lost.
    """
    told = {"reward"} if episode.reward is not None else set[str]()
    if named and episode.rollout_id is not None:
        told |= _naming(episode.row or {})
    return sorted(name for name, value in (episode.row or {}).items() if value is not None and name not in told)


def _naming(row: Json) -> frozenset[str]:
    """The fields that a rollout's id is made of (design.md, words)."""
    if row.get("_ng_rollout_id") is not None:
        return frozenset({"_ng_rollout_id", "_ng_attempt_index"})
    return frozenset({"_ng_task_index", "_ng_rollout_index", "_ng_attempt_index"})


def response_fields(episode: Episode) -> list[str]:
    """The fields of an envelope that say something which the request does not."""
    request = episode.request or {}
    return sorted(
        f"response.{name}"
        for name, value in (episode.response or {}).items()
        if name not in _SAID_ELSEWHERE and value not in _NOTHING and request.get(name) != value
    )


def row_losses(episode: Episode, *, named: bool = False) -> Iterator[Loss]:
    """The loss of the fields of a row; `named` as in `row_fields`."""
    names = row_fields(episode, named=named)
    if names:
        yield Loss("row_fields_dropped", detail=", ".join(names))
