"""What an episode holds of a finished row and of a response's envelope, for targets that have no place for it."""

from collections.abc import Iterator

from ng_capture.contracts.episode import Episode
from ng_capture.contracts.losses import Loss

_SAID_ELSEWHERE = frozenset({"object", "model", "status", "incomplete_details", "output", "usage", "tools"})
"""Fields of an envelope that say what it is, or that calls and turns say."""
_NOTHING: tuple[object, ...] = (None, "", [], {})


def row_fields(episode: Episode) -> list[str]:
    """The fields of a row that say something besides its reward, which is told by itself."""
    return sorted(
        name
        for name, value in (episode.row or {}).items()
        if value is not None and not (name == "reward" and episode.reward is not None)
    )


def response_fields(episode: Episode) -> list[str]:
    """The fields of an envelope that say something which the request does not."""
    request = episode.request or {}
    return sorted(
        f"response.{name}"
        for name, value in (episode.response or {}).items()
        if name not in _SAID_ELSEWHERE and value not in _NOTHING and request.get(name) != value
    )


def row_losses(episode: Episode) -> Iterator[Loss]:
    """The loss of the fields of a row."""
    names = row_fields(episode)
    if names:
        yield Loss("row_fields_dropped", detail=", ".join(names))
