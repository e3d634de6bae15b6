"""`ng_capture.load(path).tensors()`: torch tensors of every exported file, over the memory that the rows lie in."""

import warnings

import pytest
import torch

from ng_capture import load
from ng_capture.outputs.forms import Form
from tests.support.tables import TABLES, WRITTEN
from tests.trainers.captured import CAPTURED
from tests.trainers.conftest import Export


@pytest.mark.parametrize(("name", "form"), [*WRITTEN, ("gym-response", Form.JSONL)])
def test_tensors_are_what_was_captured_with_the_types_of_trainers(export: Export, name: str, form: Form) -> None:
    for found, each in zip(load(export(name, ending=form)).tensors(), CAPTURED, strict=True):
        assert torch.equal(found["tokens"], torch.tensor(each.tokens, dtype=torch.int32))
        assert torch.equal(found["loss_mask"], torch.tensor(each.mask, dtype=torch.int8))
        assert (found["tokens"].dtype, found["loss_mask"].dtype) == (torch.int32, torch.int8)
        if "logprobs" in found:
            assert torch.equal(found["logprobs"], torch.tensor(each.log_probs))


@pytest.mark.parametrize("ending", TABLES)
def test_a_table_is_not_copied_and_says_nothing(export: Export, ending: str) -> None:
    loaded = load(export("rows", ending=ending))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensors = []
        for found in loaded.tensors():
            tensors.append(found)
            with pytest.raises(UserWarning, match="somebody's own"):
                warnings.warn("somebody's own: not writable", UserWarning, stacklevel=1)
    # the rows of one batch lie behind each other in one piece of memory
    for name, size in (("tokens", 4), ("loss_mask", 1), ("logprobs", 4)):
        places = [found[name].data_ptr() for found in tensors]
        ends = [place + size * len(found[name]) for place, found in zip(places, tensors, strict=True)]
        assert places[1:] == ends[:-1]


@pytest.mark.parametrize("ending", TABLES)
def test_tensors_outlive_the_file_and_the_loop(export: Export, ending: str) -> None:
    out = export("rows", ending=ending)
    tensors = list(load(out).tensors())
    out.unlink()
    assert [found["tokens"].tolist() for found in tensors] == [each.tokens for each in CAPTURED]
