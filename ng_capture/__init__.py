"""Turn capture files of LLM-agent rollouts into training data that can be trusted."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from ng_capture.loading import Loaded

__version__ = "0.1.0"


def load(path: "str | PathLike[str]") -> "Loaded":
    """What rebuild exported, in any form: typed rows, `.dataset()`, `.tensors()`; raises UsageError for any other."""
    from ng_capture.loading import load

    return load(path)
