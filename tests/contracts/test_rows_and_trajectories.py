"""Rows to trajectories and back, case by case (contracts.md 7.2, T-RA and T-AR)."""

import json
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Options, Thinking
from tests.support.contracts import Document
from tests.support.converting import converted

TOKENS = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}
PLACEHOLDER = {"prompt_token_ids": [0], "generation_token_ids": [0], "generation_log_probs": [0.0]}
USAGE = {"input_tokens": 30, "output_tokens": 7, "total_tokens": 37}
IMAGE = [{"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw0KGgo="}]
HI = {"role": "user", "content": "hi"}


def row(*output: Document, asked: Any = (HI,), usage: Document | None = None, **parameters: Any) -> Document:
    asked = asked if isinstance(asked, str) else list(asked)
    response = {"id": "r", "object": "response", "model": "m", "output": list(output), "usage": usage}
    return {"responses_create_params": {"input": asked, **parameters}, "response": response}


def said(text: str, **more: Any) -> Document:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"m_{text}", "role": "assistant", "content": [part], **more}


def called(call_id: str, arguments: str = "{}", **more: Any) -> Document:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": arguments, **more}


def gave(call_id: str, output: Any) -> Document:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def thought(*texts: str, **more: Any) -> Document:
    summary = [{"type": "summary_text", "text": text} for text in texts]
    return {"type": "reasoning", "id": "rs", "summary": summary, **more}


def outline(trajectory: Document) -> str:
    """The steps in short: `U hi; A*(ok, R, c1{"x":1}, c1=42)`, a copied one with a star."""
    return "; ".join(map(_step, trajectory["steps"]))


def _step(step: Document) -> str:
    if step["source"] != "agent":
        return f"{step['source'][0].upper()} {step['message']}"
    told = [step["message"], step.get("reasoning_content")]
    told += [f"{call['tool_call_id']}{_json(call['arguments'])}" for call in step.get("tool_calls", ())]
    results = step.get("observation", {}).get("results", ())
    told += [f"{result.get('source_call_id')}={_text(result['content'])}" for result in results]
    return f"A{'*' * step.get('is_copied_context', False)}({', '.join(filter(None, told))})"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "|".join(part["text"].split(":")[0] for part in content)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


TO_TRAJECTORIES: dict[str, tuple[Document, str, set[str]]] = {
    "T-RA-1": (row(said("ok"), asked="hi"), "U hi; A(ok)", {"step_boundary_inferred", "agent_version_unknown"}),
    "T-RA-2": (
        row(thought("R"), said("ok"), called("c1", '{"x":1}'), gave("c1", "42"), said("done"), instructions="S"),
        'S S; U hi; A(ok, R, c1{"x":1}, c1=42); A(done)',
        {"instructions_as_system"},
    ),
    "T-RA-3": (
        row(called("c1"), called("c2"), gave("c2", "two"), gave("c1", "one")),
        "U hi; A(c1{}, c2{}, c2=two, c1=one)",
        set(),
    ),
    "T-RA-4": (
        row(called("c1"), gave("c1", "a"), called("c2"), gave("c2", "b"), said("end")),
        "U hi; A(c1{}, c1=a); A(c2{}, c2=b); A(end)",
        set(),
    ),
    "T-RA-5": (row(said("a"), said("b")), "U hi; A(a); A(b)", {"step_boundary_inferred"}),
    "T-RA-6": (row(called("c1", '{"b":1,"a":"é"}')), 'U hi; A(c1{"b":1,"a":"é"})', {"call_without_output"}),
    "T-RA-7": (
        row(called("c1", "[1]"), called("c2", "nope"), called("c3", "")),
        'U hi; A(c1{"value":[1]}, c2{"raw":"nope"}, c3{"raw":""})',
        {"arguments_not_object"},
    ),
    "T-RA-8": (row(said("a"), gave("z", "r")), "U hi; A(a, None=r)", {"output_unlinked"}),
    "T-RA-9": (
        row(called("c1"), gave("c1", [{"type": "input_text", "text": text} for text in "ab"])),
        "U hi; A(c1{}, c1=a|b)",
        set(),
    ),
    "T-RA-10": (row(called("c1"), gave("c1", IMAGE)), "U hi; A(c1{}, c1=[image omitted)", {"media_omitted"}),
    "T-RA-13": (row(said("", **PLACEHOLDER)), "U hi; A()", {"tokens_placeholder"}),
    "T-RA-15": (row(thought("a", "b"), said("x")), "U hi; A(x, a\nb)", {"reasoning_segments_joined"}),
    "T-RA-16": (row(thought(encrypted_content="E"), said("x")), "U hi; A(x)", {"reasoning_encrypted_opaque"}),
    "T-RA-17": (
        row(said("x"), asked=[{"role": "developer", "content": "D"}, HI]),
        "S D; U hi; A(x)",
        {"developer_role"},
    ),
    "T-RA-18": (
        row(said("x"), {"type": "message", "role": "user", "content": "more"}, said("y")),
        "U hi; A(x); U more; A(y)",
        set(),
    ),
    "T-RA-19": (
        row(said("y"), asked=[HI, {"role": "assistant", "content": "old"}, HI]),
        "U hi; A*(old); U hi; A(y)",
        {"copied_context"},
    ),
    "T-RA-20": (row(), "U hi", set()),
    "T-RA-21": (row(said("x"), tool_choice=None, parallel_tool_calls=None, tools=None), "U hi; A(x)", set()),
    "T-RA-22": (
        row({"type": "mcp_call", "id": "i", "name": "w", "server_label": "s", "arguments": "{}", "output": "o"}),
        "U hi; A(i{}, i=o)",
        {"item_type_mapped"},
    ),
    "T-RA-23": (row(said("<think>R</think>x")), "U hi; A(<think>R</think>x)", {"think_tags_in_text"}),
}


@pytest.mark.parametrize("case", TO_TRAJECTORIES)
def test_a_row_becomes_the_steps_that_the_specification_tells(case: str) -> None:
    given, steps, codes = TO_TRAJECTORIES[case]
    done = converted(given, GYM, ATIF)
    assert outline(done.value) == steps
    assert codes <= set(done.codes)
    told = {"agent_name_unknown", "agent_version_unknown", "step_boundary_inferred", "call_without_output"}
    assert set(done.codes) - told <= codes


@pytest.mark.parametrize("case", TO_TRAJECTORIES)
def test_the_row_comes_back_from_its_steps(case: str) -> None:
    given, _, codes = TO_TRAJECTORIES[case]
    back = converted(converted(given, GYM, ATIF).value, ATIF, GYM).value
    if "media_omitted" not in codes and "tokens_placeholder" not in codes:
        assert back["response"]["output"] == given["response"]["output"]


def test_tokens_of_a_message_are_metrics_and_of_two_items_the_last_counts() -> None:
    """T-RA-11 and T-RA-12."""
    last = {**TOKENS, "generation_token_ids": [9]}
    arrays = {"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5]}
    assert converted(row(said("a", **TOKENS)), GYM, ATIF).value["steps"][1]["metrics"] == arrays
    done = converted(row(said("a", **TOKENS), called("c1", **last)), GYM, ATIF)
    assert done.value["steps"][1]["metrics"] == {**arrays, "completion_token_ids": [9]}
    assert "tokens_multiple_items" in done.codes and "[3]" in json.dumps(done.value["steps"][1]["extra"])


def test_a_total_over_two_calls_is_of_no_step() -> None:
    """T-RA-14."""
    value = converted(row(called("c1"), gave("c1", "a"), said("b"), usage=USAGE), GYM, ATIF).value
    told = value["final_metrics"]
    assert (told["total_prompt_tokens"], told["total_completion_tokens"]) == (30, 7)
    assert not any("metrics" in step for step in value["steps"])


def test_think_tags_are_split_where_that_is_asked_for() -> None:
    """T-RA-23."""
    done = converted(row(said("<think>R</think>x")), GYM, ATIF, Options(thinking=Thinking.SPLIT))
    assert outline(done.value) == "U hi; A(x, R)" and "think_tags_split" in done.codes
