"""`llamafactory`: hf-labels as the directory that LLaMA-Factory's `tokenized_path` names, and no other form."""

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.hf_labels import HF_LABELS
from ng_capture.outputs.export.formats.interface import Record, TrainerFormat
from ng_capture.outputs.forms import Form


def _row(row: FlatRow) -> Record:
    return {**HF_LABELS.row(row), "images": [], "videos": [], "audios": []}


LLAMAFACTORY = TrainerFormat(
    name="llamafactory",
    trainer="LLaMA-Factory (tokenized_path)",
    checked="datasets 2.16.0 to 5.2.0",
    alignment="full, unshifted; -100 where the mask is 0; what datasets.load_from_disk loads",
    columns={**HF_LABELS.columns, "images": ["text"], "videos": ["text"], "audios": ["text"]},
    row=_row,
    read=HF_LABELS.read,
    drops="log probabilities, rewards, spans, media",
    forms=(Form.DIRECTORY,),
)
