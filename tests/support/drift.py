"""The folder `drift/` of the corpus: rollouts whose prefixes break for a known cause, and what is true of each call."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.explain.breaks import Break, find_breaks
from ng_capture.outputs.explain.causes import CAUSES
from ng_capture.outputs.explain.rollout import ShownRollout, read_rollout
from ng_capture.outputs.verify import VerifyTask
from ng_capture.tokenizer import Tokenizer, load_tokenizer
from ng_capture.verdicts.judging import Judging
from tests.support.corpus import json_lines

TOKENIZERS = {"qwen3": "qwen3/tokenizer.json.gz", "mistral_v3": "mistral_v3/tokenizer.model.v3"}
Row = Mapping[str, Any]


class Drift:
    """Everything in the folder; `truth` by call id, in the order of its file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.captures = folder / "captures"
        self.truth: dict[str, Row] = {row["model_call_id"]: row for row in json_lines(folder / "truth.jsonl")}
        self.rollouts: dict[str, Row] = {row["rollout_id"]: row for row in json_lines(folder / "rollouts.jsonl")}

    @property
    def edges(self) -> list[Row]:
        return [row for row in self.truth.values() if row["parent_call_id"] is not None]

    @property
    def broken(self) -> list[Row]:
        return [row for row in self.edges if not row["prefix_holds"]]

    @property
    def families(self) -> list[str]:
        return list(dict.fromkeys(row["family"] for row in self.rollouts.values()))

    @cached_property
    def shown(self) -> dict[str, ShownRollout]:
        """Every rollout, read and judged once."""
        listing = list_rollouts([str(self.captures)])
        tasks = (VerifyTask(files.rollout_id, files, None, Judging()) for files in listing)
        return {task.rollout_id: read_rollout(task) for task in tasks}

    @cached_property
    def breaks_by_text(self) -> dict[str, Break]:
        """The breaks by their calls, each rollout explained with its family's tokenizer."""
        return self._breaks(lambda rollout_id: tokenizer_of(self, self.rollouts[rollout_id]["family"]))

    @cached_property
    def breaks_by_ids(self) -> dict[str, Break]:
        """The same without a tokenizer."""
        return self._breaks(lambda _: None)

    def _breaks(self, tokenizer: Callable[[str], Tokenizer | None]) -> dict[str, Break]:
        found = (find_breaks(shown, tokenizer(rollout_id)) for rollout_id, shown in self.shown.items())
        return {each.call: each for breaks in found for each in breaks}


@cache
def tokenizer_of(drift: Drift, family: str) -> Tokenizer:
    """The tokenizer of a family, loaded once."""
    return load_tokenizer(str(drift.folder / TOKENIZERS[family]))


class Confusion(NamedTuple):
    """Broken edges by their true cause and the one that was found (None where no break was found)."""

    counts: Counter[tuple[str, str | None]]

    @property
    def right(self) -> int:
        return sum(count for (true, found), count in self.counts.items() if true == found)

    @property
    def right_group(self) -> int:
        """How many have a cause of the right group at least."""
        pairs = ((true, found, count) for (true, found), count in self.counts.items() if found is not None)
        return sum(count for true, found, count in pairs if CAUSES[true].group is CAUSES[found].group)

    @property
    def wrong(self) -> Iterator[str]:
        return (f"{true} taken for {found}: {n}" for (true, found), n in self.counts.items() if true != found)


def confusion(broken: Iterable[Row], breaks: Mapping[str, Break]) -> Confusion:
    """What was found for what is true."""
    found = ((row["cause"], breaks.get(row["model_call_id"])) for row in broken)
    return Confusion(Counter((true, None if each is None else each.cause) for true, each in found))
