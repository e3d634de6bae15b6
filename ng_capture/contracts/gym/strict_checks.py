"""What Gym's import of ATIF refuses, all of it at once (contracts.md 3.2, reverify)."""

from collections import Counter
from collections.abc import Iterator

from ng_capture.contracts.episode import Content, Episode, Media, Role, Text, Thread, ToolCall, Turn
from ng_capture.contracts.gym.rules import fault
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.contracts.times import seconds_in

_VERSION = "ATIF-v1.7"


def strict_faults(episode: Episode) -> Iterator[Fault]:
    """Every reason to refuse an episode rather than lose a part of it; token counts are `strict_usage`'s."""
    yield from _document(episode)
    saw_agent = False
    for at, turn in enumerate(episode.main.turns):
        for rule, message in _step(turn, saw_agent):
            yield fault(rule, message, turn.place or pointer("steps", at), step=at + 1)
        saw_agent = saw_agent or turn.role == Role.ASSISTANT
    if not saw_agent:
        yield fault("gym.strict.no_agent_step", "no step of the agent")
    yield from _calls_and_results(episode.main)
    yield from _models(episode.main)
    yield from _timestamp(episode.main)


def _document(episode: Episode) -> Iterator[Fault]:
    thread = episode.main
    if episode.contract == "atif" and episode.version not in (None, _VERSION):
        yield fault("gym.strict.version", f"{episode.version}, not {_VERSION}", "/schema_version")
    steps = thread.totals.steps if thread.totals is not None else None
    if steps is not None and steps != len(thread.turns):
        message = f"{steps} are counted, there are {len(thread.turns)}"
        yield fault("gym.strict.total_steps", message, "/final_metrics/total_steps")
    if thread.continued is not None:
        yield fault("gym.strict.continued", f"goes on in {thread.continued}", "/continued_trajectory_ref")
    if thread.subagents:
        yield fault("gym.strict.subagents", f"{len(thread.subagents)} embedded", "/subagent_trajectories")


def _step(turn: Turn, saw_agent: bool) -> Iterator[tuple[str, str]]:
    """The rules that one step breaks."""
    if turn.copied:
        yield "gym.strict.copied_context", "copied from an earlier call"
    yield from _content(turn.content, "message")
    for place, result in enumerate(turn.results):
        yield from _content(result.content, f"result {place}")
        if result.subagents:
            yield "gym.strict.subagents", f"result {place} names a sub-agent"
    if turn.role != Role.ASSISTANT:
        if saw_agent:
            yield "gym.strict.later_turn", f"a {turn.role} step after the agent's"
        if turn.results:
            yield "gym.strict.observation", f"a {turn.role} step with an observation"
        return
    if turn.call is not None and turn.call.tokens is not None:
        yield "gym.strict.tokens", "token ids or log probabilities"
    if turn.calls and turn.content:
        yield "gym.strict.text_and_calls", f"a text and {len(turn.calls)} calls"
    if turn.model_calls is not None and turn.model_calls > 1:
        yield "gym.strict.model_calls", f"{turn.model_calls} calls of the model"


def _content(content: Content | None, of: str) -> Iterator[tuple[str, str]]:
    if not isinstance(content, tuple):
        return
    if not content:
        yield "gym.strict.content", f"{of}: no parts"
    if any(isinstance(part, Media) for part in content):
        yield "gym.strict.media", f"{of}: an image or a sound"
    if any(not isinstance(part, Media | Text) for part in content):
        yield "gym.strict.content", f"{of}: a part that is no text"


def _calls_and_results(thread: Thread) -> Iterator[Fault]:
    called, answered = Counter[str](), Counter[str]()
    for at, turn in enumerate(thread.turns):
        if turn.role == Role.ASSISTANT:
            for rule, message in (*_calls(turn, called), *_results(turn, answered)):
                yield fault(rule, message, turn.place or pointer("steps", at), step=at + 1)


def _calls(turn: Turn, called: Counter[str]) -> Iterator[tuple[str, str]]:
    for call in turn.calls:
        if call.call_id is None or not call.call_id.strip():
            yield "gym.strict.call_id", f"a call of {call.name} has no id"
        else:
            called[call.call_id] += 1
            if called[call.call_id] > 1:
                yield "gym.strict.call_repeated", f"{call.call_id} again"
        if not call.name.strip():
            yield "gym.strict.call_name", f"call {call.call_id} has no name"
        if not is_object(call):
            yield "gym.strict.arguments", f"the arguments of {call.call_id} are no JSON object"


def _results(turn: Turn, answered: Counter[str]) -> Iterator[tuple[str, str]]:
    own = {call.call_id for call in turn.calls if call.call_id}
    for place, result in enumerate(turn.results):
        if result.call_id is None:
            yield "gym.strict.result_unlinked", f"result {place} names no call"
            continue
        if result.call_id not in own:
            yield "gym.strict.result_unknown", f"result {place} names {result.call_id}"
        answered[result.call_id] += 1
        if answered[result.call_id] > 1:
            yield "gym.strict.result_repeated", f"{result.call_id} again"
        structured = "tool_result" in (result.extra or {})
        if result.content is None and not structured:
            yield "gym.strict.result_empty", f"result {place} has no content"
        if result.content is not None and structured:
            yield "gym.strict.result_twice", f"result {place} has two contents"
    for call_id in sorted(own - {result.call_id for result in turn.results}):
        yield "gym.strict.result_missing", f"no result for {call_id}"


def is_object(call: ToolCall) -> bool:
    """True where the arguments of a call are a JSON object."""
    try:
        return isinstance(call.value, dict)
    except ValueError:
        return False


def _models(thread: Thread) -> Iterator[Fault]:
    names = {_model(turn) or thread.agent.model for turn in thread.turns if turn.role == Role.ASSISTANT}
    if len(names) > 1:
        told = ", ".join(sorted(name or "none" for name in names))
        yield fault("gym.strict.models", f"the steps are of {told}")


def _model(turn: Turn) -> str | None:
    return turn.call.model if turn.call is not None else None


def _timestamp(thread: Thread) -> Iterator[Fault]:
    for at, turn in reversed(list(enumerate(thread.turns))):
        if turn.role == Role.ASSISTANT and turn.timestamp is not None:
            if seconds_in(turn.timestamp) is None:
                path = turn.place or pointer("steps", at)
                yield fault("gym.strict.timestamp", f"{turn.timestamp} names no moment", path, step=at + 1)
            return
