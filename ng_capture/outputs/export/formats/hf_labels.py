"""`hf-labels`: ids and labels, -100 where nothing is trained; TRL SFT, Axolotl and Unsloth load it as it is."""

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import Arrays, Record, TrainerFormat

IGNORED = -100
"""The label that carries no loss."""


def _row(row: FlatRow) -> Record:
    labels = [token if trained else IGNORED for token, trained in zip(row.tokens, row.loss_mask, strict=True)]
    return {"input_ids": row.tokens, "attention_mask": [1] * len(row.tokens), "labels": labels}


def _read(row: Record) -> Arrays:
    labels = list(row["labels"])
    return Arrays(list(row["input_ids"]), [int(label != IGNORED) for label in labels], None)


HF_LABELS = TrainerFormat(
    name="hf-labels",
    trainer="TRL SFT, Axolotl, Unsloth",
    checked="trl 1.16.0",
    alignment="full, unshifted; -100 where the mask is 0",
    columns={"input_ids": "ids", "attention_mask": "mask", "labels": "ids"},
    row=_row,
    read=_read,
    tells=frozenset(),
    drops="log probabilities, rewards, spans: three columns are all that every one of these loaders takes",
)
