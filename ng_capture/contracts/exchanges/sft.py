"""The contract `sft`: chat messages as trainers take them, a line each conversation (contracts.md 1.4, 7.1).

The form is that of `rebuild --to messages`; what no model of this conversation wrote has weight 0.
"""

from collections.abc import Iterator

from ng_capture.contracts.dialects.thinking import with_think_tags
from ng_capture.contracts.dialects.tools import definition_of
from ng_capture.contracts.episode import Content, Episode, Json, Media, Opaque, Part, Role, Text, Tool, ToolCall, Turn
from ng_capture.contracts.exchanges.pairs import LEFT_OUT, Pair, left_out, refusals, threads_of
from ng_capture.contracts.interface import Contract, Feature, Options, Thinking, Writer, Written
from ng_capture.contracts.items.linking import linked
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import encode_json, printable

Message = dict[str, object]
_LINE = "\n"


def _write(episode: Episode, options: Options) -> Written:
    episodes, losses = threads_of(episode, options)
    rows = list[bytes]()
    for each in episodes:
        writing = _Writing(options)
        rows.append(encode_json(writing.row(each)))
        losses = (
            *losses,
            *left_out(each, Pair(each.main.turns, None), joined=True),
            *_unwritten(each),
            *writing.losses,
        )
    return Written(tuple(rows), losses)


class _Writing:
    def __init__(self, options: Options) -> None:
        self._restores_tags = options.thinking is not Thinking.SPLIT
        self.losses = list[Loss]()

    def row(self, episode: Episode) -> Json:
        """The conversation with its tools as JSON text, and what the row is joined and chosen by."""
        turns = [turn for turn in episode.main.turns if turn.role != Role.EVENT]
        tools = [self._tool(tool) for tool in episode.main.agent.tools or ()]
        return {
            "messages": [message for turn in turns for message in self._messages(turn)],
            "tools": encode_json(tools).decode() if tools else None,
            "rollout_id": episode.rollout_id,
            "reward": episode.reward,
        }

    def _messages(self, turn: Turn) -> Iterator[Message]:
        if turn.content is not None or turn.thoughts or turn.calls or not turn.results:
            yield self._said(turn)
        call_ids = [call.call_id or "" for call in turn.calls]
        links = linked(turn.results, call_ids, turn.place, self.losses.append) if turn.results else []
        for result, call_id in zip(turn.results, links, strict=True):
            if result.is_error:
                self._lose("is_error_dropped", turn)
            told: Message = {"role": "tool", "content": self._text(turn, result.content, _LINE)}
            yield {**told, "tool_call_id": call_id} if call_id else told

    def _said(self, turn: Turn) -> Message:
        role = turn.role
        if role == Role.DEVELOPER:
            self._lose("developer_role", turn)
            role = Role.SYSTEM
        text = self._text(turn, turn.content, _LINE if role == Role.SYSTEM else "")
        reasoning = list[str]()
        for thought in turn.thoughts:
            tagged = with_think_tags(text, thought) if self._restores_tags else None
            if tagged is not None:
                text = tagged
                continue
            reasoning += thought.texts
            if thought.content and thought.summary:
                self._lose("reasoning_summary_dropped", turn)
            if thought.signature is not None or thought.encrypted is not None:
                self._lose("reasoning_signature_dropped" if thought.texts else "reasoning_dropped", turn)
        if len(reasoning) > 1:
            self._lose("reasoning_segments_joined", turn)
        told: Message = {"role": role.value, "content": text}
        if any(reasoning):
            told["reasoning_content"] = printable(_LINE.join(reasoning))
        if turn.calls:
            told["tool_calls"] = [_called(call) for call in turn.calls]
        return {**told, "weight": self._weight(turn)} if role == Role.ASSISTANT else told

    def _weight(self, turn: Turn) -> int:
        """What a loss counts of a turn: nothing of history that another call made, nor of what no model wrote."""
        if turn.copied:
            self._lose("copied_context", turn)
        elif turn.model_calls == 0:
            self._lose("no_model_call", turn)
        else:
            return 1
        return 0

    def _text(self, turn: Turn, content: Content | None, between: str) -> str:
        if content is None or isinstance(content, str):
            return printable(content or "")
        if len(content) > 1:
            self._lose("parts_flattened", turn)
        return between.join(filter(None, (self._part(turn, part) for part in content)))

    def _part(self, turn: Turn, part: Part) -> str:
        match part:
            case Text(text):
                return printable(text)
            case Media(kind=kind):
                self._lose("media_omitted", turn, kind)
                return f"[{kind}]"
            case Opaque(kind="refusal", value=value):
                return printable(str(value.get("refusal")))
            case Opaque(kind=kind):
                self._lose("content_type_unsupported", turn, kind)
                return f"[{printable(kind)}]"

    def _tool(self, tool: Tool) -> Json:
        definition = definition_of(tool)
        if definition is None:
            # as NeMo Gym makes it: a function without parameters (contracts.md 4.1)
            self.losses.append(Loss("tool_definition_not_function", detail=tool.name))
        function: dict[str, object] = {"name": tool.name or tool.value.get("type")}
        if definition is not None and definition.description is not None:
            function["description"] = definition.description
        parameters = definition.parameters if definition is not None else None
        function["parameters"] = parameters or {"type": "object", "properties": {}}
        return {"type": "function", "function": function}

    def _lose(self, code: str, turn: Turn, detail: str | None = None) -> None:
        self.losses.append(Loss(code, turn.place, detail=detail))


def _called(call: ToolCall) -> Json:
    """A call; an id that nobody knows is left out."""
    function = {"name": printable(call.name), "arguments": printable(call.arguments)}
    told: Message = {"type": "function", "function": function}
    return told if call.call_id is None else {"id": printable(call.call_id), **told}


def _unwritten(episode: Episode) -> Iterator[Loss]:
    yield from refusals(episode.main.turns)
    asked = sorted(name for name, value in (episode.request or {}).items() if value is not None)
    if asked:
        yield Loss("request_fields_dropped", detail=", ".join(asked))
    carriers = [turn for turn in episode.main.turns if turn.call is not None and turn.call.tokens is not None]
    if carriers:
        yield Loss("tokens_dropped", carriers[0].place, len(carriers))


SFT = Contract(
    name="sft",
    title="chat messages for supervised fine-tuning, with weights",
    authority="nothing: it is made for a trainer",
    join_key="the id of the rollout",
    writer=Writer(
        write=_write,
        suffix=".sft.jsonl",
        losses={
            **{code: feature for code, feature in LEFT_OUT.items() if code != "reward_dropped"},
            "content_type_unsupported": Feature.OTHER_CONTENT,
            "copied_context": Feature.COPIED,
            "developer_role": Feature.DEVELOPER,
            "is_error_dropped": Feature.FAILED_RESULTS,
            "link_ambiguous": Feature.UNLINKED_RESULTS,
            "link_by_position": Feature.UNLINKED_RESULTS,
            "media_omitted": Feature.MEDIA,
            "no_model_call": Feature.NO_MODEL,
            "output_unlinked": Feature.UNLINKED_RESULTS,
            "parts_flattened": Feature.PARTS,
            "reasoning_dropped": Feature.ENCRYPTED_REASONING,
            "reasoning_segments_joined": Feature.SUMMARIES,
            "reasoning_signature_dropped": Feature.ENCRYPTED_REASONING,
            "reasoning_summary_dropped": Feature.SUMMARIES,
            "request_fields_dropped": Feature.REQUEST,
            "tokens_dropped": Feature.TOKENS,
            "tool_definition_not_function": Feature.SERVER_TOOLS,
        },
    ),
)
