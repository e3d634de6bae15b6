"""Which call a result answers that names none (contracts.md 3.6): by place, told, never by guess."""

from collections.abc import Callable, Sequence

from ng_capture.contracts.episode import ToolResult
from ng_capture.contracts.losses import Loss


def linked(
    results: Sequence[ToolResult], call_ids: Sequence[str], place: str, lose: Callable[[Loss], None]
) -> list[str | None]:
    """The call of every result of a turn; None where a result names none and no call is left for it."""
    named = {result.call_id for result in results}
    nameless = sum(result.call_id is None for result in results)
    free = [call_id for call_id in call_ids if call_id not in named]
    if nameless:
        code = "link_by_position" if nameless == len(free) else "link_ambiguous" if call_ids else "output_unlinked"
        lose(Loss(code, place, nameless))
    left = iter(free)
    return [next(left, None) if result.call_id is None else result.call_id for result in results]
