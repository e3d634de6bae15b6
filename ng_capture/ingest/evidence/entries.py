"""Log probabilities that stand in entries, one a token, most of them with its id (ingest.md 1.1)."""

import math
from collections.abc import Iterable, Mapping, Sequence

from ng_capture.ingest.evidence.told import Told, Values, a_list
from ng_capture.records.json_text import object_in

TOKEN_ID = "token_id:"
_ID_KEYS = ("token_id", "id")


def content_entries(logprobs: object, *, processed: bool = False) -> Iterable[Told]:
    """`logprobs` of any dialect: entries in `content`, or lists side by side (completions, Together)."""
    told = object_in(logprobs)
    content = a_list(told.get("content"))
    if content:
        yield from object_entries(content, processed=processed)
    log_probs = a_list(told.get("token_logprobs"))
    if log_probs:
        yield from _with_ids(log_probs, [_spelled_ids(a_list(told.get("tokens")) or []), a_list(told.get("token_ids"))])


def object_entries(entries: Values, *, processed: bool = False) -> Iterable[Told]:
    """Entries that are objects: their log probabilities, with each of the spellings that their ids have."""
    known = [object_in(entry) for entry in entries]
    if not any("logprob" in entry or "prob" in entry for entry in known):
        return
    ids = [[entry.get(key) for entry in known] for key in _ID_KEYS]
    spelled = _spelled_ids([entry.get("token") for entry in known])
    log_probs: Values = [_log_prob(entry, processed) for entry in known]
    yield from _with_ids(log_probs, [*(None if None in each else each for each in ids), spelled])


def _with_ids(log_probs: Values, spelled: Sequence[Values | None]) -> Iterable[Told]:
    """The log probabilities with each list of ids that is as long, else alone."""
    named = [ids for ids in spelled if ids is not None and len(ids) == len(log_probs)]
    for ids in named:
        yield Told(generation=ids, log_probs=log_probs, named=True)
    if not named:
        yield Told(log_probs=log_probs)


def triple_entries(triples: object) -> Iterable[Told]:
    """Entries that are lists, `[log probability, id, ...]`."""
    entries = a_list(triples)
    if entries:
        pairs = [entry if isinstance(entry, list) and len(entry) > 1 else [None, None] for entry in entries]
        yield Told(generation=[pair[1] for pair in pairs], log_probs=[pair[0] for pair in pairs], named=True)


def _log_prob(entry: Mapping[str, object], processed: bool) -> object:
    if processed and "sampling_logprob" in entry:
        return entry["sampling_logprob"]
    return entry["logprob"] if "logprob" in entry else _logarithm(entry.get("prob"))


def _logarithm(value: object) -> object:
    """Of a probability its logarithm; what is none stays what it is, or is no number."""
    if type(value) not in (float, int):
        return value
    if not 0 <= value <= 1:  # type: ignore[operator]
        return math.nan
    return math.log(value) if value else -math.inf  # type: ignore[arg-type]


def _spelled_ids(tokens: Values) -> Values | None:
    """Ids that stand as `token_id:N` where texts belong, all of them or none; one that is malformed stays a text."""
    if not tokens or not all(isinstance(token, str) and token.startswith(TOKEN_ID) for token in tokens):
        return None
    return [_spelled_id(str(token)) for token in tokens]


def _spelled_id(token: str) -> object:
    text = token.removeprefix(TOKEN_ID)
    # twenty digits are no id any more, and thousands of them no integer
    plain = text.isascii() and text.isdigit() and len(text) < 20 and (text == "0" or not text.startswith("0"))
    return int(text) if plain else token
