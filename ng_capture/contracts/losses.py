"""What a conversion could not keep: one registry of codes, and losses as data (contracts.md 3.6)."""

from collections.abc import Iterable, Iterator
from typing import Literal, cast

import msgspec

LossSeverity = Literal["note", "degraded", "dropped", "synthesised"]

# the worst first
CONSEQUENCES: dict[LossSeverity, str] = {
    "dropped": "it is not in the output",
    "synthesised": "the output needs a value that nobody knows",
    "degraded": "its meaning changed form",
    "note": "kept, in another place or form; it can be undone",
}
SEVERITIES: tuple[LossSeverity, ...] = tuple(CONSEQUENCES)


class LossCode(msgspec.Struct, frozen=True):
    """A kind of loss."""

    name: str
    severity: LossSeverity
    meaning: str


_TABLE = """
developer_role | degraded | a developer's turn is written as a system turn
instructions_as_system | note | the instructions are written as a leading system turn
step_boundary_inferred | note | nothing says which items one call made; steps were told by the order of items
reasoning_segments_joined | note | several pieces of reasoning are one text, joined by line breaks
reasoning_summary_dropped | dropped | a reasoning item has content, so its summary is left out
reasoning_dropped | dropped | the target has no place for reasoning
reasoning_encrypted_opaque | note | reasoning that only its provider can read is carried, unread
signature_unknown | synthesised | the target wants a signature of thinking, and nobody has one; an empty one is refused
reasoning_signature_dropped | dropped | the signature of a thinking block has no place
think_tags_in_text | note | a text holds think tags and is left as it is
think_tags_split | note | think tags were cut out of a text into reasoning
arguments_not_object | degraded | the arguments of a call are no JSON object and are wrapped
output_unlinked | degraded | a tool output names a call that is not there
output_duplicate | note | a call has more than one output
call_id_unknown | synthesised | the target wants an id of a call, and the source has none
call_without_output | note | a call has no output
parts_flattened | degraded | parts of a content became one text
media_omitted | dropped | an image, sound or file is not carried along
media_type_unknown | dropped | an image of unknown type has no place
content_type_unsupported | dropped | a content of another kind has no place
tokens_multiple_items | degraded | one step has tokens on several items; the last ones count
tokens_placeholder | dropped | token fields that are placeholders are left out
tokens_incomplete | dropped | one or two of prompt ids, generated ids, log probabilities are missing or do not fit
tokens_dropped | dropped | the target has no place for token ids and log probabilities
usage_mismatch | note | the usage of the row is not the sum over its calls; the row's is kept
usage_includes_subagents | note | the totals count more than the steps do
usage_dropped | dropped | the target has no place for token counts
usage_unknown | synthesised | the target wants token counts, and nobody knows them: 0 stands there
cache_write_dropped | dropped | the target has no place for tokens written to the prompt cache
agent_version_unknown | synthesised | the target wants a version of the agent, and nobody knows it
agent_name_unknown | synthesised | the target wants a name of the agent, and nobody knows it
tool_definition_not_function | degraded | a tool that is no function has no place among the tools
tools_dropped | dropped | the target has no place for the tools that were offered
row_fields_dropped | dropped | fields of the row have no place
item_type_mapped | note | an item of another type is written as a tool call
item_type_opaque | degraded | an item of another type is carried as JSON text
item_order_changed | degraded | the items of a step stand in another order
history_rewritten | degraded | a request holds another history than the calls before it
subagent_parent_unknown | degraded | nothing says which call began a sub-agent
subagent_by_session | note | a sub-agent is named by its run alone; the run's id stands where its own would
subagent_dropped | dropped | a sub-agent's turns are not in the output
failed_call_omitted | dropped | a call that failed makes no step
retry_collapsed | dropped | a call that was made again makes no step
tool_output_not_captured | note | the last calls' outputs were never sent back, so nobody knows them
conversation_unavailable | degraded | the source has no text of what was asked
conversation_dropped | dropped | the target has no place for what was said
reward_unavailable | note | the source holds no reward
link_by_position | note | a result is given to the call at its place, since it names none
link_ambiguous | degraded | a result names no call and several could be meant
copied_context | note | turns of an earlier call are marked as copied, not as output
no_model_call | note | a step was made by no model
system_step_in_output | note | a turn of the system or the user stands among the output
step_fields_dropped | dropped | fields of a step have no place
timestamps_dropped | dropped | the target has no place for times
is_error_dropped | dropped | the target has no place for the mark that a tool failed
choice_dropped | dropped | a response has several choices; the first one is used
finish_reason_dropped | dropped | the target has no place for why a call ended
request_fields_dropped | dropped | parameters of a request have no place
mark_dropped | dropped | a mark is no part of the conversation
scope_dropped | dropped | a scope of a kind that no contract knows
scope_unfinished | degraded | a scope has no end: the run was cut there
logprobs_rounded | note | the source stores log probabilities rounded
stream_rebuilt | note | a streamed answer has no end or no envelope; it is put together from what came
reward_dropped | dropped | the target has no place for the reward
metadata_dropped | dropped | the target has no place for ids, notes or extras of the source
"""

LOSS_CODES: dict[str, LossCode] = {
    name: LossCode(name, cast(LossSeverity, severity), meaning)
    for name, severity, meaning in (line.split(" | ") for line in _TABLE.strip().splitlines())
}


class Loss(msgspec.Struct, frozen=True, omit_defaults=True):
    """One loss: `path` is a JSON pointer into the source or the output, `count` how often, the path being the first."""

    code: str
    path: str = ""
    count: int = 1
    detail: str | None = None

    @property
    def severity(self) -> LossSeverity:
        """How bad it is."""
        return LOSS_CODES[self.code].severity


def lost(losses: Iterable[Loss]) -> Iterator[Loss]:
    """The losses that take something away: all but notes."""
    return (loss for loss in losses if loss.severity != "note")


def merged(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """One loss for each code and detail, with their count and first path, in the order in which they appeared."""
    found: dict[tuple[str, str | None], Loss] = {}
    for loss in losses:
        known = found.get((loss.code, loss.detail))
        count = loss.count if known is None else known.count + loss.count
        found[loss.code, loss.detail] = msgspec.structs.replace(known or loss, count=count)
    return tuple(found.values())
