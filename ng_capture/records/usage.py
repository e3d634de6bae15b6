"""What a server says a call used, in the three dialects' spellings (capture-files.md 7.3)."""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number of things: where a document is read back, no other integer is one."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call, or sums over calls; unknown is null, never 0.

    `tokens_in` holds what was read from the prompt cache (`cached_tokens`) and what was written to it.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_reasoning: int | None = None
    tokens_total: int | None = None
    cached_tokens: int | None = None
    cache_creation_tokens: int | None = None

    @property
    def partial(self) -> bool:
        """True where prompt or answer was not counted."""
        return self.tokens_in is None or self.tokens_out is None


UNKNOWN_USAGE = Usage()


def decode_usage(usage: Mapping[str, object]) -> Usage:
    """The usage that a response reports; cached tokens are counted once, however a proxy spells them."""
    details_in = _details(usage, "input_tokens_details", "prompt_tokens_details")
    details_out = _details(usage, "output_tokens_details", "completion_tokens_details")
    read, created = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    in_details = _first(details_in.get("cached_tokens"), details_in.get("cached_input_tokens"))
    tokens_out = _first(usage.get("output_tokens"), usage.get("completion_tokens"))
    total = count(usage.get("total_tokens"))
    tokens_in = _tokens_in(usage, (read or 0) + (created or 0), in_details, total, tokens_out)
    if total is None and tokens_in is not None and tokens_out is not None:
        total = tokens_in + tokens_out
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_reasoning=_first(details_out.get("reasoning_tokens"), usage.get("reasoning_output_tokens")),
        tokens_total=total,
        cached_tokens=_first(in_details, read, usage.get("cached_input_tokens")),
        cache_creation_tokens=created,
    )


def _tokens_in(
    usage: Mapping[str, object], cached: int, in_details: int | None, total: int | None, tokens_out: int | None
) -> int | None:
    """Prompt tokens with `cached` among them once.

    Messages leave the tokens of the cache out of `input_tokens`; `prompt_tokens`, and an `input_tokens` with details,
    hold them. Proxies write both spellings: a total that was reported tells which it is, else a count that is too small
    to hold them does not. NeMo Gym adds them to whichever it finds (7.3).
    """
    own, whole = count(usage.get("input_tokens")), count(usage.get("prompt_tokens"))
    known = own if own is not None else whole
    if known is None or not cached:
        return known
    candidates = [each for each in (whole, own) if each is not None and each >= cached]
    if total is not None and tokens_out is not None and total - tokens_out in (*candidates, known + cached):
        return total - tokens_out
    holds = whole is not None and whole >= cached if in_details is None or not in_details else known >= cached
    return max(candidates) if holds and candidates else known + cached


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Sums of what is known, null where nothing is."""
    told = [msgspec.structs.astuple(usage) for usage in usages]
    return Usage(*(_sum(values) for values in zip(*told, strict=True)))


def count(value: object) -> int | None:
    """A count as it was reported; anything but a plain integer of 64 bits that is not negative is unknown."""
    return value if type(value) is int and 0 <= value < 2**63 else None


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _first(*candidates: object) -> int | None:
    return next((number for each in candidates if (number := count(each)) is not None), None)


def _details(usage: Mapping[str, object], *names: str) -> Mapping[str, object]:
    return next((value for name in names if isinstance(value := usage.get(name), dict)), {})
