"""The order in which a person lists rollouts."""

import re

_DIGITS = re.compile(r"([0-9]+)")

NaturalKey = tuple[list[str | tuple[int, str]], str]


def natural_key(rollout_id: str) -> NaturalKey:
    """Sort key under which `2-0` comes before `10-0`; equal numbers fall back to the text."""
    parts: list[str | tuple[int, str]] = list(_DIGITS.split(rollout_id))
    # by length first: numbers of any size
    parts[1::2] = [(len(digits), digits) for digits in (str(part).lstrip("0") for part in parts[1::2])]
    return parts, rollout_id
