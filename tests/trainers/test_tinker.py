"""tinker's own types take a `tinker` row as it is."""

from collections.abc import Mapping
from typing import Any

import pytest
import tinker
from tinker.types._pydantic_types.datum import Datum as WireDatum

from ng_capture import load
from tests.trainers.captured import CAPTURED
from tests.trainers.conftest import Export

VARIANTS = {
    "none": {"target_tokens": "int64", "weights": "float32"},
    "grpo": {"target_tokens": "int64", "logprobs": "float32", "advantages": "float32"},
}


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows(export: Export, variant: str) -> list[Mapping[str, Any]]:
    return [row.fields for row in load(export("tinker", "--advantage", variant))]


def datum_of(row: Mapping[str, Any]) -> tinker.Datum:
    """As the README does it."""
    (chunk,) = row["model_input"]["chunks"]
    inputs = {name: tinker.TensorData(**tensor) for name, tensor in row["loss_fn_inputs"].items()}
    return tinker.Datum(model_input=tinker.ModelInput.from_ints(chunk["tokens"]), loss_fn_inputs=inputs)


def span_of(run: dict[str, Any]) -> Any:
    kinds = {"prompt": tinker.types.PromptProvenanceSpan, "sampled": tinker.types.SampledProvenanceSpan}
    return kinds[run["kind"]](**{name: value for name, value in run.items() if name != "kind"})


def test_a_datum_is_built_of_a_row_with_tensors_of_one_length(export: Export, variant: str) -> None:
    for row, each in zip(rows(export, variant), CAPTURED, strict=True):
        datum = datum_of(row)
        assert datum.model_input.to_ints() == each.tokens[:-1]
        told = datum.loss_fn_inputs
        assert {name: tensor.dtype for name, tensor in told.items()} == VARIANTS[variant]
        assert {tuple(tensor.shape or ()) for tensor in told.values()} == {(len(each.tokens) - 1,)}
        assert told["target_tokens"].to_numpy().tolist() == each.tokens[1:]
        if variant == "none":
            assert told["weights"].to_numpy().tolist() == each.mask[1:]
        else:
            assert told["logprobs"].to_numpy().tolist() == each.log_probs[1:]
            assert [int(value != 0.0) for value in told["advantages"].to_numpy()] == each.mask[1:]


def test_the_wire_model_takes_the_two_keys_of_a_datum_and_gives_them_back(export: Export, variant: str) -> None:
    for row in rows(export, variant):
        datum = {name: row[name] for name in ("model_input", "loss_fn_inputs")}
        found = WireDatum.model_validate(datum).model_dump(mode="json", exclude_none=True)
        assert found["model_input"] == datum["model_input"]
        assert {name: tensor["data"] for name, tensor in found["loss_fn_inputs"].items()} == {
            name: tensor["data"] for name, tensor in datum["loss_fn_inputs"].items()
        }


def test_the_runs_of_a_row_tile_the_datum(export: Export, variant: str) -> None:
    for row in rows(export, variant):
        told = row["provenance"]
        datum = datum_of(row).with_provenance(
            model_input=[span_of(run) for run in told["model_input_spans"]],
            loss_fn_inputs=[span_of(run) for run in told["loss_fn_input_spans"]],
        )
        assert datum.loss_fn_input_spans is not None
        sampled = [
            isinstance(span, tinker.types.SampledProvenanceSpan)
            for span in datum.loss_fn_input_spans
            for _ in range(span.length)
        ]
        mask = row["loss_fn_inputs"]["weights" if variant == "none" else "advantages"]["data"]
        assert sampled == [value != 0.0 for value in mask]
