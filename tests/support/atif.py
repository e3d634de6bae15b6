"""Small ATIF documents, and any that is valid: for hypothesis."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.atif.validate import check_document
from ng_capture.contracts.episode import Episode
from ng_capture.contracts.interface import Options, Read, Refused, Written
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from tests.support.faults import Draw

Doc = dict[str, Any]

_DOCUMENT: Doc = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s-1",
    "agent": {"name": "counter", "version": "1.0", "model_name": "policy-a"},
    "steps": [
        {"step_id": 1, "timestamp": "2026-01-02T03:04:05Z", "source": "user", "message": "Add 2 and 3."},
        {
            "step_id": 2,
            "timestamp": "2026-01-02T03:04:06Z",
            "source": "agent",
            "message": "",
            "reasoning_content": "Use the tool.",
            "tool_calls": [{"tool_call_id": "call_1", "function_name": "add", "arguments": {"a": 2, "b": 3}}],
            "observation": {"results": [{"source_call_id": "call_1", "content": "5"}]},
            "metrics": {"prompt_tokens": 12, "completion_tokens": 4, "cached_tokens": 0},
        },
        {
            "step_id": 3,
            "timestamp": "2026-01-02T03:04:07Z",
            "source": "agent",
            "message": "5",
            "metrics": {"prompt_tokens": 20, "completion_tokens": 1},
        },
    ],
    "final_metrics": {"total_prompt_tokens": 32, "total_completion_tokens": 5, "total_steps": 3},
}


def document(**members: object) -> Doc:
    """A valid document: a user, a call of a tool with its result, an answer."""
    return {**copy.deepcopy(_DOCUMENT), **members}


def with_steps(*steps: Doc, **members: object) -> Doc:
    """A document of these steps, numbered, and without totals."""
    told = document(steps=[{"step_id": at, **step} for at, step in enumerate(steps, start=1)], **members)
    return {key: value for key, value in told.items() if key != "final_metrics" or key in members}


def agent_step(message: object = "ok", **members: object) -> Doc:
    return {"source": "agent", "message": message, **members}


def user_step(message: object = "hi", **members: object) -> Doc:
    return {"source": "user", "message": message, **members}


def called(call_id: str = "c1", **members: object) -> Doc:
    return {"tool_call_id": call_id, "function_name": "f", "arguments": {"x": 1}, **members}


def put(value: Doc, path: str, member: object) -> Doc:
    """The document with another member at a pointer."""
    told = copy.deepcopy(value)
    owner: Any = told
    *parents, last = path.strip("/").split("/")
    for part in parents:
        owner = owner[int(part)] if isinstance(owner, list) else owner[part]
    owner[int(last) if isinstance(owner, list) else last] = member
    return told


def without(value: Doc, path: str) -> Doc:
    """The document without the member at a pointer."""
    told = copy.deepcopy(value)
    owner: Any = told
    *parents, last = path.strip("/").split("/")
    for part in parents:
        owner = owner[int(part)] if isinstance(owner, list) else owner[part]
    del owner[int(last) if isinstance(owner, list) else last]
    return told


def faults_of(value: object) -> list[Fault]:
    return list(check_document(value))


def told(value: object) -> list[tuple[str, str, str]]:
    """The faults of a document as severity, rule and path."""
    return [(fault.severity, fault.rule, fault.path) for fault in check_document(value)]


def errors(value: object) -> list[tuple[str, str]]:
    """The errors of a document as rule and path."""
    return [(fault.rule, fault.path) for fault in check_document(value) if fault.severity == "error"]


def read_text(folder: Path, text: str, options: Options | None = None) -> Read | Refused:
    """What reading a file of that text gives."""
    path = folder / "trajectory.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert ATIF.reader is not None
    (outcome,) = ATIF.reader.read(Source(str(path)), options or Options())
    return outcome


def read_one(folder: Path, value: object, options: Options | None = None) -> Episode:
    """The episode of a document in a file."""
    outcome = read_text(folder, json.dumps(value), options)
    assert isinstance(outcome, Read), outcome
    return outcome.episode


def write_one(episode: Episode, **options: Any) -> tuple[Doc, Written]:
    """The document of an episode, and what became of it."""
    assert ATIF.writer is not None
    written = ATIF.writer.write(episode, Options(**options))
    assert isinstance(written, Written), written
    (data,) = written.documents
    return json.loads(data), written


def codes(written: Written) -> list[str]:
    return [loss.code for loss in written.losses]


# any valid document of v1.7

NAMES = st.text("abcxyz_", min_size=1, max_size=6)
TEXTS = st.text(max_size=12)
NUMBERS = st.integers(0, 2**53) | st.floats(0, 1e9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES | st.sampled_from(["role", "messages", "tokens", "total_tokens"]), JSON, max_size=3)
TIMES = st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.25+02:00", "2026-01-02", "20260102T030405"])
PARTS = st.lists(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}, optional={"source": st.none()})
    | st.fixed_dictionaries(
        {
            "type": st.just("image"),
            "source": st.fixed_dictionaries(
                {"media_type": st.sampled_from(["image/png", "image/webp"]), "path": TEXTS}
            ),
        }
    ),
    max_size=3,
)


def _some(needed: Doc, optional: Doc) -> st.SearchStrategy[Doc]:
    """Objects with these members, and any of the others, null at times."""
    return st.fixed_dictionaries(needed, optional={name: st.none() | each for name, each in optional.items()})


_METRICS = _some(
    {},
    {
        "prompt_tokens": st.integers(0, 99),
        "completion_tokens": st.integers(0, 99),
        "cached_tokens": st.integers(0, 99),
        "cost_usd": NUMBERS,
        "prompt_token_ids": st.lists(st.integers(0, 2**31), max_size=3),
        "completion_token_ids": st.lists(st.integers(0, 2**31), max_size=3),
        "logprobs": st.lists(st.floats(-9, 0), max_size=3),
        "extra": OBJECTS,
    },
)
_TOTALS = _some(
    {},
    {
        "total_prompt_tokens": st.integers(0, 99),
        "total_cached_tokens": st.integers(0, 99),
        "total_cost_usd": NUMBERS,
        "total_steps": st.integers(0, 9),
        "extra": OBJECTS,
    },
)
_REFERENCES = st.lists(
    _some({"trajectory_path": TEXTS}, {"trajectory_id": TEXTS, "session_id": TEXTS, "extra": OBJECTS}), max_size=2
)
_AGENTS = _some(
    {"name": TEXTS, "version": TEXTS},
    {"model_name": TEXTS, "tool_definitions": st.lists(OBJECTS, max_size=2), "extra": OBJECTS},
)


@st.composite
def _steps(draw: Draw, number: int) -> Doc:
    source = draw(st.sampled_from(["system", "user", "agent"]))
    step: Doc = draw(
        _some(
            {"message": TEXTS | PARTS},
            {"timestamp": TIMES, "is_copied_context": st.booleans(), "extra": OBJECTS},
        )
    )
    ids: list[str] = []
    if source == "agent":
        made: Doc = draw(
            _some(
                {},
                {
                    "model_name": TEXTS,
                    "reasoning_effort": TEXTS | NUMBERS,
                    "reasoning_content": TEXTS,
                    "tool_calls": st.lists(
                        _some(
                            {"tool_call_id": NAMES, "function_name": TEXTS, "arguments": st.dictionaries(TEXTS, JSON)},
                            {"extra": OBJECTS},
                        ),
                        max_size=2,
                    ),
                    "metrics": _METRICS,
                    "llm_call_count": st.integers(1, 3),
                },
            )
        )
        ids = [call["tool_call_id"] for call in made.get("tool_calls") or ()]
        step |= made
        if made.get("metrics") is None and made.get("reasoning_content") is None and draw(st.booleans()):
            step["llm_call_count"] = 0
    if draw(st.booleans()):
        optional = {"content": TEXTS | PARTS, "subagent_trajectory_ref": _REFERENCES, "extra": OBJECTS}
        if ids:
            optional["source_call_id"] = st.sampled_from(ids)
        step["observation"] = {"results": draw(st.lists(_some({}, optional), max_size=3))}
    return {"step_id": number, "source": source, **step}


@st.composite
def documents(draw: Draw, depth: int = 1) -> Doc:
    """Any valid document of v1.7, with nulls and empty members where they may stand."""
    told: Doc = draw(
        _some(
            {"schema_version": st.just("ATIF-v1.7"), "agent": _AGENTS},
            {
                "session_id": TEXTS,
                "trajectory_id": TEXTS,
                "notes": TEXTS,
                "final_metrics": _TOTALS,
                "continued_trajectory_ref": TEXTS,
                "extra": OBJECTS,
            },
        )
    )
    told["steps"] = [draw(_steps(number)) for number in range(1, draw(st.integers(1, 3)) + 1)]
    if depth and draw(st.booleans()):
        members = draw(st.lists(documents(depth - 1), max_size=2))
        told["subagent_trajectories"] = [{**member, "trajectory_id": str(at)} for at, member in enumerate(members)]
    return told
