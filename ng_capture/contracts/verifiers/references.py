"""Where the earlier branches of a trace are referred to: as links say, else beside the conversation (6; 3.5, 3)."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.contracts.episode import Role, SubagentRef, Thread, ToolResult, Turn
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.tasks import arguments_of, only_one, task_of
from ng_capture.contracts.verifiers.branches import Kind
from ng_capture.contracts.verifiers.strands import Spoken, Strand

_COMPACTION = {"context_management": {"type": "compaction", "boundary": "replace"}}


class Reference(msgspec.Struct, frozen=True):
    """A branch as another one refers to it.

    On the result of a call (`node` the turn's, `call` its number), else as a turn of its own in the branch `number`,
    before the turn of `node`, at the end where that is None.
    """

    ref: SubagentRef
    number: int
    node: int | None = None
    call: int | None = None
    turn: Turn | None = None
    loss: Loss | None = None


def reference_to(strand: Strand, thread: Thread, strands: Sequence[Strand]) -> Reference:
    """Where an earlier branch is referred to; `thread` is the conversation in it."""
    ref, main, branch = SubagentRef(thread.trajectory_id), strands[-1], strand.branch
    place = thread.turns[0].place
    beside = Turn(Role.EVENT, "", results=(ToolResult(None, None, subagents=(ref,)),), place=place)
    if branch.kind == Kind.SEGMENT:
        after = _holding(branch.resumed, strands)
        told = msgspec.structs.replace(beside, extra=_COMPACTION)
        return Reference(ref, after.branch.number, _first_own(after), turn=told)
    if branch.kind == Kind.REWRITTEN:
        forked = next((each.node for each in main.turns if each.node not in branch.path), None)
        return Reference(ref, main.branch.number, forked, turn=beside, loss=Loss("history_rewritten", place))
    called = _call_of(strand, thread, strands)
    if called is not None:
        return Reference(ref, _holding(called[0], strands).branch.number, *called)
    return Reference(ref, main.branch.number, turn=beside, loss=Loss("subagent_parent_unknown", place))


def referring(strand: Strand, references: Sequence[Reference]) -> Iterator[Turn]:
    """The turns of a branch with what refers to others in it."""
    mine = [each for each in references if each.number == strand.branch.number]
    for spoken in strand.turns:
        yield from (each.turn for each in mine if each.turn is not None and each.node == spoken.node)
        turn = spoken.turn
        for each in mine:
            if each.call is not None and each.node == spoken.node:
                turn = _answering(turn, each.call, each.ref)
        yield turn
    yield from (each.turn for each in mine if each.turn is not None and each.node is None)


def _answering(turn: Turn, number: int, ref: SubagentRef) -> Turn:
    """The turn with a reference on the result of its call, which need not have come."""
    call_id = turn.calls[number].call_id
    at = next((at for at, result in enumerate(turn.results) if result.call_id == call_id), len(turn.results))
    result = turn.results[at] if at < len(turn.results) else ToolResult(call_id, None)
    told = msgspec.structs.replace(result, subagents=(*result.subagents, ref))
    return msgspec.structs.replace(turn, results=(*turn.results[:at], told, *turn.results[at + 1 :]))


def _call_of(strand: Strand, thread: Thread, strands: Sequence[Strand]) -> tuple[int, int] | None:
    """The node and number of the call that began an agent: of the turn that its link names, or before its return."""
    branch = strand.branch
    node = branch.caller
    if node is None and branch.resumed is not None:
        turns = _holding(branch.resumed, strands).turns
        before = [each.node for each in turns if each.node < branch.resumed and each.turn.calls]
        node = before[-1] if before else None
    spoken = _spoken(node, strands) if node is not None else None
    if spoken is None:
        return None
    calls: Mapping[int, object] = {at: arguments_of(call) for at, call in enumerate(spoken.turn.calls)}
    number = only_one(calls, task_of(thread))
    return None if number is None else (spoken.node, number)


def _holding(node: int | None, strands: Sequence[Strand]) -> Strand:
    """The branch in which a node counts."""
    return next((each for each in strands if node in each.branch.own), strands[-1])


def _spoken(node: int, strands: Sequence[Strand]) -> Spoken | None:
    return next((each for each in _holding(node, strands).turns if each.node == node), None)


def _first_own(strand: Strand) -> int | None:
    """The first turn that only this branch and earlier ones hold."""
    return next((each.node for each in strand.turns if each.node in strand.branch.own), None)
