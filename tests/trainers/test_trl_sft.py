"""TRL's SFT trainer takes steps on `hf-labels`, over the tokens that were generated and no others."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset, Features, List, Value, load_dataset
from trl import SFTConfig, SFTTrainer

from ng_capture import load
from tests.support.command import run
from tests.support.forge import Forge, write_rows
from tests.trainers.captured import CAPTURED
from tests.trainers.conftest import Export
from tests.trainers.tiny import tiny_model, tiny_tokenizer, token_log_probs

FEATURES = Features(
    {"input_ids": List(Value("int32")), "attention_mask": List(Value("int8")), "labels": List(Value("int32"))}
)


def from_lines(path: Path) -> Dataset:
    return load_dataset("json", data_files=str(path), features=FEATURES, split="train")


def from_table(path: Path) -> Dataset:
    return load_dataset("parquet", data_files=str(path), split="train")


def from_arrow(path: Path) -> Dataset:
    return Dataset.from_file(str(path))


def by_load(path: Path) -> Dataset:
    return load(path).dataset()


WAYS = [
    pytest.param("jsonl", from_lines, id="jsonl"),
    pytest.param("parquet", from_table, id="parquet"),
    pytest.param("arrow", from_arrow, id="arrow"),
    pytest.param("jsonl", by_load, id="load-jsonl"),
]


def trainer_of(rows: Dataset, path: Path, **config: Any) -> SFTTrainer:
    chosen = {
        "output_dir": str(path),
        "max_steps": 2,
        "per_device_train_batch_size": len(CAPTURED),
        "learning_rate": 1e-3,
        "use_cpu": True,
        "bf16": False,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        **config,
    }
    return SFTTrainer(
        model=tiny_model(), args=SFTConfig(**chosen), train_dataset=rows, processing_class=tiny_tokenizer()
    )


def mean_loss(rows: Iterable[tuple[list[int], list[int]]]) -> float:
    """The mean over the tokens whose mask is 1, of every row by itself: no padding, no batch, no trainer."""
    model = tiny_model().eval()
    with torch.no_grad():
        losses = [-token_log_probs(model, tokens)[torch.tensor(mask[1:]).bool()] for tokens, mask in rows]
    return float(torch.cat(losses).mean())


def trained(rows: Dataset) -> int:
    """How many labels carry loss once nothing predicts the first of a row."""
    return sum(label != -100 for row in rows for label in row["labels"][1:])


@pytest.mark.parametrize(("ending", "loaded"), WAYS)
def test_the_trainer_s_loss_is_that_of_the_generated_tokens(
    export: Export, tmp_path: Path, ending: str, loaded: Any
) -> None:
    trainer = trainer_of(loaded(export("hf-labels", ending=ending)), tmp_path, max_length=None)
    (batch,) = trainer.get_train_dataloader()
    trainer.model.eval()
    with torch.no_grad():
        found = float(trainer.compute_loss(trainer.model, batch))
    assert found == pytest.approx(mean_loss((each.tokens, each.mask) for each in CAPTURED), abs=1e-5)
    whole = mean_loss((each.tokens, [1] * len(each.tokens)) for each in CAPTURED)
    assert abs(found - whole) > 1e-3


@pytest.mark.parametrize(("ending", "loaded"), WAYS)
def test_two_steps_lower_the_loss(export: Export, tmp_path: Path, ending: str, loaded: Any) -> None:
    trainer = trainer_of(loaded(export("hf-labels", ending=ending)), tmp_path, max_length=None, logging_steps=1)
    trainer.train()
    first, second = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    assert trainer.state.global_step == 2
    assert second < first == pytest.approx(mean_loss((each.tokens, each.mask) for each in CAPTURED), abs=1e-4)


@pytest.mark.parametrize("only_completions", [None, True, False])
def test_no_setting_of_the_trainer_widens_what_is_trained(
    export: Export, tmp_path: Path, only_completions: bool | None
) -> None:
    """The trap: with a mask column and no labels everything is trained."""
    rows = from_table(export("hf-labels", ending="parquet"))
    assert rows.column_names == ["input_ids", "attention_mask", "labels"]
    trainer = trainer_of(rows, tmp_path, max_length=None, completion_only_loss=only_completions)
    expected = [
        [token if mask else -100 for token, mask in zip(each.tokens, each.mask, strict=True)] for each in CAPTURED
    ]
    assert [row["labels"] for row in trainer.train_dataset] == expected


@pytest.fixture
def with_a_long_row(tmp_path: Path) -> Path:
    """Three rollouts, one of 1,201 tokens, whose answer is the last of them."""
    rows = []
    for number, length in enumerate((5, 1200, 9)):
        forge = Forge(f"{number}-0")
        rows.append(forge.row(forge.root([3 + place % 60 for place in range(length)], [1], id=str(number))))
        forge.write(tmp_path / "long" / "store")
    write_rows(tmp_path / "long" / "rows.jsonl", rows)
    return tmp_path / "long" / "store"


def test_with_the_trainer_s_default_length_a_long_row_would_be_lost_without_a_word(
    export: Export, with_a_long_row: Path, tmp_path: Path
) -> None:
    """The trap as it stands in TRL; the next two tests are what the README recommends."""
    rows = from_lines(export("hf-labels", source=with_a_long_row))
    assert (len(rows), len(trainer_of(rows, tmp_path).train_dataset)) == (3, 2)


def test_without_a_length_in_the_trainer_every_row_is_trained_whole(
    export: Export, with_a_long_row: Path, tmp_path: Path
) -> None:
    rows = from_lines(export("hf-labels", source=with_a_long_row))
    trainer = trainer_of(rows, tmp_path, max_length=None)
    assert [len(row["input_ids"]) for row in trainer.train_dataset] == [6, 1201, 10]


def test_with_one_length_in_both_what_does_not_fit_is_told_and_all_that_is_written_is_trained(
    export: Export, with_a_long_row: Path, tmp_path: Path
) -> None:
    out = tmp_path / "told.jsonl"
    finished = with_a_long_row.parent / "rows.jsonl"
    done = run(
        "rebuild", with_a_long_row, "--rollouts", finished, "--to", "hf-labels", "--max-length", "1024", "-o", out
    )
    assert "rows left out: over_max_length 1" in done.err
    rows = from_lines(out)
    trainer = trainer_of(rows, tmp_path, max_length=1024)
    assert (len(rows), len(trainer.train_dataset)) == (2, 2)
    assert trained(trainer.train_dataset) == trained(rows)


def test_rows_that_fit_lose_no_trained_token_when_they_are_packed(export: Export, tmp_path: Path) -> None:
    """The trap: packing cuts what is longer than its length."""
    length = max(len(each.tokens) for each in CAPTURED)
    rows = from_table(export("hf-labels", "--max-length", length, ending="parquet"))
    trainer = trainer_of(rows, tmp_path, max_length=length, packing=True)
    labels = [label for row in trainer.train_dataset for label in row["labels"] if label != -100]
    assert len(labels) == trained(rows) == sum(sum(each.mask) for each in CAPTURED)
