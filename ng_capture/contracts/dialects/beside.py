"""What messages of chat and of Messages hold beside what a turn says: names, annotations, marks for a cache."""

from collections.abc import Iterator, Mapping

from ng_capture.contracts.episode import ModelCall, Turn
from ng_capture.contracts.items.pieces import ITEM_TYPES
from ng_capture.records.json_text import object_in, objects_in

_HELD = frozenset({"role", "type", "index", "object", "content", "blocks", "envelope", "choice", "apart", "fields"})
"""Names under which a turn keeps how its message stood, and those that say nothing."""
WEIGHT = "weight"
"""What a loss counts of a message in rows for trainers: 0 for what is not to be learnt."""
_NESTED = ("image_url", "input_audio", "source")
_EMPTY: tuple[object, ...] = (None, "", [], {})


def fields_beside(turn: Turn) -> Iterator[str]:
    """The names of fields that another contract has no place for; none for a turn of items of Responses."""
    item = turn.item or {}
    if "type" in item or "role" in item:
        return
    kept = [item, object_in(item.get("choice")), object_in(item.get("envelope"))]
    calls_and_results = [*(call.item for call in turn.calls), *(result.item for result in turn.results)]
    kept += [each for each in calls_and_results if each is not None and str(each.get("type")) not in ITEM_TYPES]
    for each in kept:
        yield from _names(each)
        for rest in (*objects_in(each.get("content")), *objects_in(each.get("blocks"))):
            yield from _names(rest)


def fields_of_items(turn: Turn) -> Iterator[str]:
    """The names of what items of Responses say beside their texts: annotations, log probabilities, detail of images."""
    items = [turn.item or {}, *(result.item or {} for result in turn.results)]
    parts = [part for item in items for key in ("content", "output") for part in objects_in(item.get(key))]
    for name in ("annotations", "logprobs", "detail"):
        if any(part.get(name) not in (*_EMPTY, "auto") and "type" in part for part in parts):
            yield name


def is_named(call: ModelCall | None) -> bool:
    """True for a call of which more is known than its answer: its id, its server, how it failed."""
    return call is not None and any(
        told is not None for told in (call.call_id, call.index, call.server, call.status_code, call.error_category)
    )


def _names(value: Mapping[str, object]) -> Iterator[str]:
    for name, told in value.items():
        if name in _NESTED:
            yield from _names(object_in(told))
        elif name not in _HELD and told not in _EMPTY and not (name == WEIGHT and told in (0, 1)):
            yield name
