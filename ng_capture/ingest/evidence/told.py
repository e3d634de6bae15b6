"""What one spelling says of the tokens of an answer."""

from collections.abc import Iterable

import msgspec

Values = list[object]
"""Ids or log probabilities as they were served, whatever they are."""


class Told(msgspec.Struct, frozen=True, eq=False):
    """The token fields of one spelling, None for what it does not have.

    `named`: every log probability stands with its id, so that `generation` and `log_probs` are equally long.
    `echoed`: both begin with the prompt (completions with `echo`).
    """

    prompt: Values | None = None
    generation: Values | None = None
    log_probs: Values | None = None
    named: bool = False
    echoed: bool = False


def a_list(value: object) -> Values | None:
    """The value if it is a list: a field of another type is not there."""
    return value if isinstance(value, list) else None


def one_of(prompt: object = None, generation: object = None, log_probs: object = None) -> Iterable[Told]:
    """The fields of an object, if one of them is there."""
    told = Told(a_list(prompt), a_list(generation), a_list(log_probs))
    if told.prompt is not None or told.generation is not None or told.log_probs is not None:
        yield told
