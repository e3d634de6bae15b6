"""Numbers of records that are written by hand as often as by programs."""

import math


def number(value: object) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def moment(value: object) -> float | None:
    """Seconds since 1970; 0 is a time that was never set."""
    found = number(value)
    return found if found is not None and found > 0 else None


def ids_in(value: object) -> list[int] | None:
    """A list of token ids; None for anything else."""
    return value if isinstance(value, list) and all(type(each) is int and each >= 0 for each in value) else None


def log_probs_in(value: object) -> list[float] | None:
    """A list of finite numbers; None for anything else."""
    return value if isinstance(value, list) and all(number(each) is not None for each in value) else None
