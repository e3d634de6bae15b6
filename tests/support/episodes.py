"""Any episode that a reader might make: for hypothesis."""

from typing import Any

from hypothesis import strategies as st

from ng_capture.contracts.episode import (
    Agent,
    Content,
    Episode,
    Media,
    ModelCall,
    Opaque,
    Part,
    Role,
    SubagentRef,
    Text,
    Thought,
    Thread,
    Tokens,
    Tool,
    ToolCall,
    ToolResult,
    Totals,
    Turn,
)
from ng_capture.records.usage import Usage
from tests.support.faults import Draw

NAMES = st.text("abcxyz_", min_size=1, max_size=6)
TEXTS = st.text(max_size=12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)
COUNTS = st.none() | st.integers(0, 99)
ARGUMENTS = st.sampled_from(
    ['{"x": 1}', '{"x":1}', '{"b":1,"a":"é"}', '{"a":1,"a":2}', "[1]", "nope", "", '{"x": 1e2}']
)
IMAGE = "data:image/png;base64,aGVsbG8="

PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, TEXTS),
    st.sampled_from(
        [
            Media("image", "https://example.test/a.png"),
            Media("image", "https://example.test/a"),
            Media("image", "b.webp", "image/webp"),
            Media("image", IMAGE, "image/png"),
            Media("image", "data:image/bmp;base64,aGVsbG8="),
            Media("audio", "a.wav", "audio/wav", 1.5),
            Media("audio", "a.mid", "audio/midi"),
            Media("video", "a.mp4"),
        ]
    ),
    st.builds(Opaque, NAMES, OBJECTS),
)
CONTENTS: st.SearchStrategy[Content] = TEXTS | st.lists(PARTS, max_size=3).map(tuple)
THOUGHTS = st.builds(
    Thought,
    summary=st.lists(TEXTS, max_size=2).map(tuple),
    content=st.lists(TEXTS, max_size=2).map(tuple),
    encrypted=st.none() | TEXTS,
    signature=st.none() | TEXTS,
    redacted=st.booleans(),
    item=st.none() | OBJECTS.filter(bool),
)
CALLS = st.builds(
    ToolCall,
    call_id=st.none() | st.sampled_from(["c1", "c2"]),
    name=NAMES,
    arguments=ARGUMENTS,
    kind=st.sampled_from(["function", "mcp_call"]),
    item=st.none() | OBJECTS.filter(bool),
    extra=st.none() | OBJECTS.filter(bool),
)
RESULTS = st.builds(
    ToolResult,
    call_id=st.none() | st.sampled_from(["c1", "c2", "z"]),
    content=st.none() | CONTENTS,
    is_error=st.none() | st.booleans(),
    subagents=st.lists(st.builds(SubagentRef, path=NAMES, session_id=st.none() | NAMES), max_size=1).map(tuple),
    item=st.none() | OBJECTS.filter(bool),
    extra=st.none() | OBJECTS.filter(bool),
)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
_IDS = st.none() | st.lists(st.integers(0, 9), max_size=3)
TOKENS = st.builds(
    Tokens,
    prompt_ids=_IDS,
    completion_ids=_IDS,
    log_probs=st.none() | st.lists(st.floats(-9, 0), max_size=3),
    routed_experts=st.none() | st.just([[0, 3]]),
)
MODEL_CALLS = st.builds(
    ModelCall,
    call_id=st.none() | NAMES,
    index=COUNTS,
    model=st.none() | NAMES,
    dialect=st.none() | st.just("chat"),
    finish_reason=st.none() | NAMES,
    status_code=st.none() | st.just(200),
    completed_at=st.none() | st.floats(0, 2e9),
    latency_ms=st.none() | st.floats(0, 1e6),
    usage=USAGES,
    usage_extra=st.none() | OBJECTS.filter(bool),
    cost_usd=st.none() | st.floats(0, 9),
    tokens=st.none() | TOKENS,
    record=st.none() | OBJECTS.filter(bool),
)
_TIMES = st.none() | st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02", "1767225600000000"])
_EXTRAS = st.none() | st.just({"role": "instructions"}) | OBJECTS.filter(bool)
_SAID = {
    "content": st.none() | CONTENTS,
    "timestamp": _TIMES,
    "extra": _EXTRAS,
    "item": st.none() | OBJECTS.filter(bool),
}
TURNS = st.one_of(
    st.builds(
        Turn,
        role=st.sampled_from([Role.SYSTEM, Role.DEVELOPER, Role.USER, Role.EVENT]),
        results=st.lists(RESULTS, max_size=1).map(tuple),
        copied=st.booleans(),
        **_SAID,
    ),
    st.builds(
        Turn,
        role=st.just(Role.ASSISTANT),
        thoughts=st.lists(THOUGHTS, max_size=2).map(tuple),
        calls=st.lists(CALLS, max_size=2).map(tuple),
        results=st.lists(RESULTS, max_size=2).map(tuple),
        call=st.none() | MODEL_CALLS,
        copied=st.booleans(),
        model_calls=st.none() | st.integers(0, 2),
        reasoning_effort=st.none() | st.just("high"),
        **_SAID,
    ),
)
_SCHEMA = {"type": "object"}
TOOLS: st.SearchStrategy[Tool] = st.sampled_from(
    [
        Tool("f", {"type": "function", "function": {"name": "f", "parameters": _SCHEMA}}, "chat"),
        Tool("f", {"type": "function", "name": "f", "parameters": _SCHEMA, "strict": True}, "responses"),
        Tool("f", {"type": "function", "name": "f", "parameters": _SCHEMA, "odd": 1}, "responses"),
        Tool("f", {"name": "f", "description": "d", "input_schema": _SCHEMA}, "messages"),
        Tool(None, {"type": "web_search"}, "responses", function=False),
    ]
)
AGENTS = st.builds(
    Agent,
    name=st.none() | NAMES,
    version=st.none() | NAMES,
    model=st.none() | NAMES,
    tools=st.none() | st.lists(TOOLS, max_size=3).map(tuple),
    extra=st.none() | OBJECTS.filter(bool),
)


@st.composite
def threads(draw: Draw, depth: int = 1) -> Thread:
    """A thread of one turn or more, and those of sub-agents."""
    children = draw(st.lists(threads(depth - 1), max_size=2)) if depth else []
    return Thread(
        turns=tuple(draw(st.lists(TURNS, min_size=1, max_size=3))),
        agent=draw(AGENTS),
        session_id=draw(st.none() | NAMES),
        totals=draw(st.none() | st.builds(Totals, USAGES, st.none() | st.floats(0, 9))),
        notes=draw(st.none() | TEXTS),
        subagents=tuple(children),
        extra=draw(st.none() | OBJECTS.filter(bool)),
    )


def episodes(contract: str = "capture", **members: Any) -> st.SearchStrategy[Episode]:
    """Any episode of a contract."""
    told: dict[str, Any] = {
        "main": threads(),
        "rollout_id": st.none() | NAMES,
        "reward": st.none() | st.floats(-1, 1),
        "request": st.none() | OBJECTS.filter(bool),
        "row": st.none() | st.fixed_dictionaries({}, optional={"_ng_task_index": COUNTS, "reward": COUNTS, "x": JSON}),
        "truncated": st.none() | st.booleans(),
        "omitted": st.lists(TURNS, max_size=1).map(tuple),
    }
    return st.builds(Episode, contract=st.just(contract), **{**told, **members})
