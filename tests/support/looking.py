"""Rollouts as `show` and `explain` read them."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.explain.rollout import ShownRollout, read_rollout
from ng_capture.outputs.verify import VerifyTask
from ng_capture.verdicts.judging import Judging, Policy
from tests.support.forge import Files, Forge, Row, in_lines, write_files


def shown(
    directory: Path,
    rollout_id: str = "r-1",
    row: Row | None = None,
    policy: Policy = Policy.TERMINAL,
    *,
    raw_calls: bool = True,
    **how: Any,
) -> ShownRollout:
    """One rollout of a capture directory; `how` is for `Judging`."""
    data = None if row is None else json.dumps(row).encode()
    listing = list_rollouts([str(directory)])
    files = listing.get(rollout_id) if rollout_id in listing else None
    return read_rollout(VerifyTask(rollout_id, files, data, Judging(policy, **how)), raw_calls=raw_calls)


def shown_files(files: Files, rollout_id: str = "r-1", row: Row | None = None, **how: Any) -> ShownRollout:
    """The rollout of some files that nothing else needs."""
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory), files)
        return shown(Path(directory), rollout_id, row, **how)


def shown_forge(forge: Forge, row: Row | None = None, *, raw: Sequence[Row] | bool = False, **how: Any) -> ShownRollout:
    """What a forge made, with its raw calls or with these beside the records."""
    files = forge.files(raw=raw is True)
    if not isinstance(raw, bool):
        files[f"{forge.rollout_id}.capture.jsonl"] = in_lines(json.dumps(each).encode() for each in raw)
    return shown_files(files, forge.rollout_id, row, **how)
