"""Does a chat template keep prefixes? Growing conversations, rendered at every step, tell where it does not."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ng_capture.chat_template import Render, TemplateRefuses, load_template, renderer

_AROUND = 60
_NOTE = 200
_FORM = "; rendered with "
_THINKING_SWITCH = "enable_thinking"
_EMPTY_THOUGHT = re.compile(r"\A\s*<think>\s*</think>\s*")

_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""What templates call the reasoning of an answer."""

Turns = Sequence[Mapping[str, Any]]

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Look something up.",
            "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
        },
    }
]


def _call(number: int, word: str) -> dict[str, Any]:
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": "look_up", "arguments": {"word": word}}}


_ASKED = {"role": "user", "content": "What is a quern?"}
_SYSTEM = {"role": "system", "content": "You answer briefly."}
_AGAIN = {"role": "user", "content": "And a saddle quern?"}
_PLAIN = {"role": "assistant", "content": "A hand mill."}
_THOUGHT = {**_PLAIN, **dict.fromkeys(_REASONING_KEYS, "I know this one.")}
_CALLING = {"role": "assistant", "content": "Let me look.", "tool_calls": [_call(1, "quern")]}
_ONLY_CALLING = {"role": "assistant", "content": "", "tool_calls": [_call(1, "quern")]}
_THOUGHT_CALLING = {**_ONLY_CALLING, **dict.fromkeys(_REASONING_KEYS, "I should look it up.")}
_BOTH_CALLING = {"role": "assistant", "content": "", "tool_calls": [_call(1, "quern"), _call(2, "saddle")]}
_FOUND = {"role": "tool", "tool_call_id": "call00001", "name": "look_up", "content": "a stone hand mill"}
_FOUND_TOO = {"role": "tool", "tool_call_id": "call00002", "name": "look_up", "content": "a flat one"}

CONVERSATIONS: Mapping[str, Turns] = {
    "second user turn": [_SYSTEM, _ASKED, _PLAIN, _AGAIN, _PLAIN],
    "tool call": [_SYSTEM, _ASKED, _CALLING, _FOUND, _PLAIN],
    "parallel tool calls": [_SYSTEM, _ASKED, _BOTH_CALLING, _FOUND, _FOUND_TOO, _PLAIN],
    "empty content": [_SYSTEM, _ASKED, _ONLY_CALLING, _FOUND, _PLAIN],
    "tool result, second user turn": [_SYSTEM, _ASKED, _CALLING, _FOUND, _PLAIN, _AGAIN, _PLAIN],
    "reasoning with a tool call": [_SYSTEM, _ASKED, _THOUGHT_CALLING, _FOUND, _THOUGHT],
    "reasoning, second user turn": [_SYSTEM, _ASKED, _THOUGHT, _AGAIN, _THOUGHT],
    "reasoning with a tool call, second user turn": [
        *(_SYSTEM, _ASKED, _THOUGHT_CALLING, _FOUND, _THOUGHT, _AGAIN, _THOUGHT),
    ],
}
"""Growing conversations by the feature that each adds."""


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """One feature of a template. Where it is broken: after which turn, at which character, what was there, what is.

    `note` says in which way it is broken, why it was refused, or in which form of the conversation it is kept.
    """

    name: str
    status: Literal["kept", "broken", "refused"]
    turn: int | None = None
    at: int | None = None
    held: str | None = None
    new: str | None = None
    note: str | None = None


class TemplateReport(msgspec.Struct, frozen=True):
    """Whether a chat template renders history as it was generated."""

    schema: str
    place: str
    keeps_prefixes: bool
    features: tuple[Feature, ...]


def check_template(place: str) -> TemplateReport:
    """Render every conversation step by step; raises UsageError where there is no template."""
    template = load_template(place)
    with_tools, plain = renderer(template, _TOOLS), renderer(template, None)
    features = [_feature(name, turns, with_tools, plain) for name, turns in CONVERSATIONS.items()]
    if _THINKING_SWITCH in template:
        silent = (renderer(template, tools, **{_THINKING_SWITCH: False}) for tools in (_TOOLS, None))
        turns = CONVERSATIONS["tool result, second user turn"]
        features.append(_feature("thinking switched off", turns, *silent))
    features.append(_trimming(with_tools, plain))
    statuses = {feature.status for feature in features}
    kept = "kept" in statuses and "broken" not in statuses
    return TemplateReport("ng-capture.template/1", place, kept, tuple(features))


def _feature(name: str, turns: Turns, with_tools: Render, plain: Render) -> Feature:
    """The feature in the first form of the conversation that the template renders at all."""
    refusal = ""
    for form, told, render in _forms(turns, with_tools, plain):
        try:
            for turn, held, new, what in _steps(told, render):
                if not new.startswith(held):
                    return _broken(name, turn, held, new, f"{what}{form}")
        except TemplateRefuses as error:
            refusal = refusal or str(error)[:_NOTE]
            continue
        return Feature(name=name, status="kept", note=form.removeprefix("; ") or None)
    return Feature(name=name, status="refused", note=refusal)


def _forms(turns: Turns, with_tools: Render, plain: Render) -> Iterator[tuple[str, Turns, Render]]:
    """A conversation in the forms that templates want; what it is about stays."""
    calls = any(turn.get("tool_calls") for turn in turns)
    alone = [turn for turn in turns if turn["role"] != "system"]
    yield "", turns, with_tools
    if calls:
        yield f"{_FORM}arguments as text", _with_text_arguments(turns), with_tools
    yield f"{_FORM}no system turn", alone, with_tools
    if calls:
        yield f"{_FORM}no system turn, arguments as text", _with_text_arguments(alone), with_tools
    else:
        yield f"{_FORM}no tools", turns, plain
        yield f"{_FORM}no system turn, no tools", alone, plain


def _with_text_arguments(turns: Turns) -> Turns:
    """The arguments of tool calls as the servers' API has them: JSON in a string."""
    told = []
    for turn in turns:
        calls = [
            {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}
            for call in turn.get("tool_calls", ())
        ]
        told.append({**turn, "tool_calls": calls} if calls else turn)
    return told


def _trimming(with_tools: Render, plain: Render) -> Feature:
    """What was generated is known here: the content, white space and all."""
    name, said = "white space at the end", f"{_PLAIN['content']}\n\n"
    refusal = ""
    for form, turns, render in _forms([_SYSTEM, _ASKED, {**_PLAIN, "content": said}, _AGAIN], with_tools, plain):
        answer = len(turns) - 2
        try:
            held, new = render(turns[:answer], True) + said, render(turns, True)
        except TemplateRefuses as error:
            refusal = refusal or str(error)[:_NOTE]
            continue
        if new.startswith(held) or not new.startswith(held.rstrip()):
            return Feature(name=name, status="kept", note=form.removeprefix("; ") or None)
        return _broken(name, answer, held, new, f"the next prompt renders the answer otherwise{form}")
    return Feature(name=name, status="refused", note=refusal)


def _steps(turns: Turns, render: Render) -> Iterator[tuple[int, str, str, str]]:
    """What was held and what must begin with it: each prompt and its answer, each answer and the next prompt."""
    for turn, message in enumerate(turns):
        if message["role"] != "assistant":
            continue
        prompt = render(turns[:turn], True)
        answered = render(turns[: turn + 1], False)
        reasoning = message.get(_REASONING_KEYS[0])
        if not reasoning and answered.startswith(prompt):
            # a block that the template writes for an answer without reasoning was not generated
            answered = prompt + _EMPTY_THOUGHT.sub("", answered[len(prompt) :])
        yield turn, prompt, answered, "the answer does not begin where its prompt ended"
        named = [call["function"]["name"] for call in message.get("tool_calls", ())]
        for what, text in (
            ("reasoning", reasoning),
            ("content", message["content"]),
            *(("call", name) for name in named),
        ):
            if text and text not in answered[len(prompt) :]:
                yield turn, f"{prompt}{text}", answered, f"the answer is rendered without its {what}"
        following = next((later for later in range(turn + 1, len(turns)) if turns[later]["role"] == "assistant"), None)
        if following is not None:
            yield turn, answered, render(turns[:following], True), "the next prompt renders the answer otherwise"


def _broken(name: str, turn: int, held: str, new: str, what: str) -> Feature:
    shorter = min(len(held), len(new))
    at = next((place for place in range(shorter) if held[place] != new[place]), shorter)
    return Feature(
        name=name,
        status="broken",
        turn=turn,
        at=at,
        held=held[at : at + _AROUND],
        new=new[at : at + _AROUND],
        note=what,
    )
