"""An episode of traces.jsonl: each of its traces is an agent's rollout (contracts.md 6)."""

from collections.abc import Iterator

import msgspec

from ng_capture.contracts.dialects.fields import text_in
from ng_capture.contracts.episode import Agent, Episode, Json, Thread, Tool
from ng_capture.contracts.interface import Options, Read, Refused
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import Fault, has_errors
from ng_capture.contracts.verifiers.branches import branches_of
from ng_capture.contracts.verifiers.nodes import Tree, read_tree
from ng_capture.contracts.verifiers.numbers import number
from ng_capture.contracts.verifiers.references import reference_to, referring
from ng_capture.contracts.verifiers.rules import fault
from ng_capture.contracts.verifiers.strands import Strand, strand_of
from ng_capture.records.json_text import object_in, objects_in

_LIMITS = frozenset({"max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed"})
_TOLD = ("nodes", "calls", "tools", "agent", "version", "id")


def is_episode(value: object) -> bool:
    """True for an episode of traces."""
    episode = object_in(value)
    return isinstance(episode.get("traces"), list) and "task" in episode


def read_traces(episode: Json, line: int, options: Options) -> Iterator[Read | Refused]:
    """The rollouts of an episode, one for each agent's trace."""
    traces = episode["traces"]
    assert isinstance(traces, list)
    if not traces:
        told = f"{episode.get('id', 'an episode')} holds no trace"
        yield Refused((fault("verifiers.traces.none", told, "/traces", line),), place=f"line {line}")
    for at, trace in enumerate(traces):
        place = f"line {line}" if len(traces) == 1 else f"line {line}, trace {at}"
        yield _read(object_in(trace), f"/traces/{at}", episode, line, place, options)


def _read(trace: Json, pointer: str, episode: Json, line: int, place: str, options: Options) -> Read | Refused:
    tree = read_tree(trace, pointer)
    calls, faults, losses = _calls(trace, tree, pointer)
    faults = [msgspec.structs.replace(each, line=line) for each in (*tree.faults, *faults)]
    if not tree.nodes and not has_errors(faults):
        faults.append(fault("verifiers.conversation.empty", "a trace without messages", f"{pointer}/nodes", line))
    if has_errors(faults):
        return Refused(tuple(faults), tuple(losses), place)
    strands = [strand_of(branch, tree, calls, pointer, options) for branch in branches_of(tree)]
    thread, lost = _thread(strands, _agent(trace, tree), trace, episode)
    reward = _reward(trace)
    if reward is None:
        losses.append(Loss("reward_unavailable", f"{pointer}/rewards"))
    made = Episode(
        contract="verifiers",
        main=thread,
        rollout_id=text_in(trace, "id"),
        reward=reward,
        request=object_in(next(objects_in(trace.get("calls")), {}).get("sampling")) or None,
        row=_row(trace, episode),
        truncated=_truncated(trace),
    )
    return Read(made, (*losses, *(loss for strand in strands for loss in strand.losses), *lost), tuple(faults), place)


def _calls(trace: Json, tree: Tree, pointer: str) -> tuple[dict[int, Json], list[Fault], list[Loss]]:
    """The calls by the nodes that they made, the last one counting; those that failed made none."""
    calls, faults, losses = dict[int, Json](), list[Fault](), list[Loss]()
    for at, call in enumerate(objects_in(trace.get("calls"))):
        node, place = call.get("node"), f"{pointer}/calls/{at}"
        if call.get("error") is not None or node is None:
            losses.append(Loss("failed_call_omitted", place))
        elif type(node) is int and 0 <= node < len(tree.nodes):
            calls[node] = call
        elif tree.nodes:
            faults.append(fault("verifiers.call.node", f"call {at} made no node that is there", f"{place}/node"))
    return calls, faults, losses


def _thread(strands: list[Strand], agent: Agent, trace: Json, episode: Json) -> tuple[Thread, list[Loss]]:
    """The main branch with the earlier ones under it."""
    name, session = text_in(trace, "id"), text_in(episode, "id")
    *earlier, main = strands
    plain = [
        Thread(
            turns=tuple(spoken.turn for spoken in strand.turns),
            agent=agent,
            trajectory_id=f"{name or session or 'trace'}-branch-{strand.branch.number}",
            session_id=session,
            extra={"ng_capture": {"verifiers": {"branch": strand.branch.number, "kind": strand.branch.kind.value}}},
        )
        for strand in earlier
    ]
    references = [reference_to(strand, thread, strands) for strand, thread in zip(earlier, plain, strict=True)]
    under = tuple(
        msgspec.structs.replace(thread, turns=tuple(referring(strand, references)))
        for strand, thread in zip(earlier, plain, strict=True)
    )
    turns = tuple(referring(main, references))
    thread = Thread(turns, agent, trajectory_id=name, session_id=session, subagents=under)
    return thread, [each.loss for each in references if each.loss is not None]


def _agent(trace: Json, tree: Tree) -> Agent:
    told = object_in(trace.get("agent"))
    models = (text_in(call, "model") for call in objects_in(trace.get("calls")))
    rest = {key: value for key, value in told.items() if key != "name"}
    offered = next(
        (node.tools for node in reversed(tree.nodes) if node.parent is None and node.tools is not None), None
    )
    if offered is None:
        offered = list(objects_in(trace.get("tools"))) or None
    return Agent(
        name=text_in(told, "name"),
        model=next((model for model in models if model is not None), None),
        tools=tuple(map(_tool, offered)) if offered is not None else None,
        extra={"ng_capture": {"verifiers": rest}} if rest else None,
    )


def _tool(tool: Json) -> Tool:
    """A tool as Responses spells it: name and parameters beside the type."""
    return Tool(text_in(tool, "name"), tool, "responses", tool.get("type", "function") == "function")


def _reward(trace: Json) -> float | None:
    """The sum of scores by their weights; None where nothing was scored."""
    told = [object_in(each) for each in object_in(trace.get("rewards")).values() if each is not None]
    values = [(number(each.get("score")), number(each.get("weight", 1.0))) for each in told]
    known = [score * weight for score, weight in values if score is not None and weight is not None]
    return number(sum(known)) if known and len(known) == len(values) else None


def _truncated(trace: Json) -> bool | None:
    """True where a limit ended the rollout, or the last answer was cut; None where nobody says how it ended (6)."""
    if str(trace.get("stop_condition")) in _LIMITS:
        return True
    answered = [call for call in objects_in(trace.get("calls")) if call.get("error") is None]
    if answered and answered[-1].get("finish_reason") == "length":
        return True
    return False if trace.get("is_completed") is True else None


def _row(trace: Json, episode: Json) -> Json:
    """What both records say beside the conversation; the trace's word counts where they have a name in common."""
    around = {key: value for key, value in episode.items() if key not in ("traces", "id")}
    return {**around, **{key: value for key, value in trace.items() if key not in _TOLD}}
