"""What was exported, held against its captures: the breaches that `verify --export` names."""

from collections.abc import Callable
from pathlib import Path

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.export.proof.prove import Breach, prove
from ng_capture.outputs.forms import Form
from ng_capture.outputs.rebuild import rebuild
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.outputs.writer import RebuildWriter, described
from ng_capture.verdicts.judging import Judging
from tests.support.tables import WRITTEN

ARRAYS = {
    "rows": ("tokens", "loss_mask", "logprobs"),
    "hf-labels": ("input_ids", "labels", None),
    "llamafactory": ("input_ids", "labels", None),
    "trl-grpo": ("completion_ids", "env_mask", "logprobs"),
    "skyrl-sft": ("input_ids", "loss_mask", None),
    "skyrl": ("response_ids", "loss_masks", "rollout_logprobs"),
    "verl": ("responses", "response_mask", "rollout_log_probs"),
    "slime": ("tokens", "loss_mask", "rollout_log_probs"),
    "prime-rl": ("completion_ids", "completion_mask", "completion_logprobs"),
}
"""Where a format keeps ids, mask and log probabilities, the last two beside the end of the first."""
LABELS = ("hf-labels", "llamafactory")
LINES_ONLY = ("rollouts", "gym-response", "messages", "pairs")
FLAT = [(name, form) for name, form in WRITTEN if name in ARRAYS]

Exported = Callable[[str, Form], Path]


def written(store: Path, name: str, form: Form, out: Path) -> Path:
    rows = RowsFile(str(store.parent / "rows.jsonl"))
    how = Rebuild(Shape(name), Judging(), form=form)
    with RebuildWriter(str(out), None, how, described(rows)) as writer:
        writer.write_all(rebuild(list_rollouts([str(store)]), rows, how))
    return out


def breaches(store: Path, out: Path) -> list[Breach]:
    rows = RowsFile(str(store.parent / "rows.jsonl"))
    return list(prove(str(out), f"{out}.receipt.json", list_rollouts([str(store)]), rows))


def broken(store: Path, out: Path) -> set[str]:
    """The invariants that are named, beside the digest of the receipt, which always is."""
    found = {breach.invariant for breach in breaches(store, out)}
    assert "receipt" in found
    return found - {"receipt"}
