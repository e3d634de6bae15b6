"""All spellings of an answer's tokens, held against one another: what they say, and whether they say the same."""

from collections.abc import Iterable

import msgspec

from ng_capture.ingest.evidence.answers import Answer
from ng_capture.ingest.evidence.echo import without_echo
from ng_capture.ingest.evidence.placing import agree, best_of, placed
from ng_capture.ingest.evidence.prompts import prompt_count, speaks_against
from ng_capture.ingest.evidence.spellings import SPELLINGS
from ng_capture.ingest.evidence.told import Told, Values


class Evidence(msgspec.Struct, frozen=True, eq=False):
    """The token fields of an answer as they were served, and the spelling that ids were read from.

    A log probability without an entry at a known position is None. `agrees` is False where two spellings differ.
    `trimmed`: the id list lacked its last id, which the log probabilities name. `cut`: the server counted more tokens
    in the prompt than there are ids.
    """

    prompt: Values | None
    generation: Values | None
    log_probs: Values | None
    prompt_origin: str | None
    generation_origin: str | None
    agrees: bool
    trimmed: bool
    cut: bool


class _Found(msgspec.Struct, frozen=True, eq=False):
    """What one spelling says."""

    origin: str
    told: Told


class _Fact(msgspec.Struct, frozen=True, eq=False):
    """One list of ids, from the first spelling that has it; `same` is False where another has other ids."""

    ids: Values | None = None
    origin: str | None = None
    same: bool = True


def evidence_of(answer: Answer) -> Evidence:
    """What all spellings together say of an answer's tokens."""
    every = [_Found(spelling.origin, told) for spelling in SPELLINGS for told in spelling.read(answer)]
    prompt, listed = _prompt(every), _generation(every, named=False)
    found = [
        _Found(each.origin, told)
        for each in every
        if (told := without_echo(each.told, prompt.ids, listed.ids)) is not None
    ]
    prompt, spelled = _prompt(found), _generation(found, named=True)
    trimmed = listed.ids is not None and bool(spelled.ids) and listed.ids == (spelled.ids or [])[:-1]
    generation = spelled if trimmed or listed.ids is None else listed
    known = [placed(each.told, generation.ids) for each in found if each.told.log_probs]
    log_probs = [each for each in known if each is not None]
    used = best_of(log_probs, generation.ids)
    agrees = prompt.same and listed.same and spelled.same and len(log_probs) == len(known)
    return Evidence(
        prompt=prompt.ids,
        generation=generation.ids,
        log_probs=used.values if used is not None else _first_log_probs(found),
        prompt_origin=prompt.origin,
        generation_origin=generation.origin,
        agrees=agrees
        and all(agree(used, other) for other in log_probs if used is not None and other is not used)
        and not (prompt.ids and speaks_against(answer, prompt.ids)),
        trimmed=trimmed,
        cut=(prompt_count(answer) or 0) > len(prompt.ids or ()),
    )


def _prompt(found: Iterable[_Found]) -> _Fact:
    """The prompt; a spelling that has it empty says nothing where another has it."""
    lists = [_Fact(each.told.prompt, each.origin) for each in found if each.told.prompt is not None]
    return _fact([each for each in lists if each.ids] or lists)


def _generation(found: Iterable[_Found], *, named: bool) -> _Fact:
    """The generated ids as they stand in lists, or as the log probabilities name them."""
    return _fact(
        [
            _Fact(each.told.generation, each.origin)
            for each in found
            if each.told.named == named and each.told.generation is not None
        ]
    )


def _fact(lists: list[_Fact]) -> _Fact:
    if not lists:
        return _Fact()
    return msgspec.structs.replace(lists[0], same=all(each.ids == lists[0].ids for each in lists))


def _first_log_probs(found: Iterable[_Found]) -> Values | None:
    """Log probabilities that stand with other ids, or none in a list."""
    return next((each.told.log_probs for each in found if each.told.log_probs is not None), None)
