"""The rules on rows (contracts.md 4.0, 5.4), and what the profiles refuse (3.1, 3.2)."""

from ng_capture.contracts.careful_json import json_rules
from ng_capture.contracts.rules import Fault, Rule, table

_ROWS = """
gym.row.type | error | a row is a JSON object
gym.row.empty | error | a row has an input or an output
gym.row.id | error | a row names its rollout in a way that Gym takes
gym.row.unnamed | warning | a finished row names its rollout
gym.row.repeated | warning | a rollout has one finished row
gym.row.reward | warning | a finished row has a reward
gym.row.params | error | a row has the request that was run
gym.row.response | error | a row has a response
gym.params.unknown | error | Gym's request has no other parameters than those that it knows
gym.params.null | warning | some parameters may not be null; older rows have them so
gym.params.type | error | a parameter has the type that Gym wants
gym.params.tool | error | a tool has a type; a function has a name, parameters and strict
gym.params.input | error | the input is a text or a list of items
gym.response.missing | error | a response has the fields that Gym wants
gym.response.type | error | a field of a response has the type that Gym wants
gym.usage.count | error | tokens are counted in whole numbers
gym.usage.cached | warning | cached tokens are among those of the prompt
gym.usage.total | warning | the total is at least prompt and answer
gym.item.object | error | an item is a JSON object
gym.item.type_missing | error | an item of an output names its type
gym.item.type_unknown | error | an item has a type that Gym knows on its side
gym.item.field_missing | error | an item has the fields of its type
gym.item.field_type | error | a field of an item has the type that Gym wants
gym.item.field_unknown | warning | what Gym does not know of an item is lost when it writes it again
gym.item.id_repeated | warning | two items have two ids
gym.part.type_unknown | error | a part has a type that its content may have
gym.part.field_missing | error | a part has the fields of its type
gym.part.field_type | error | a field of a part has the type that Gym wants
gym.part.field_unknown | warning | what Gym does not know of a part is lost when it writes it again
gym.tokens.partial | error | prompt ids, generated ids and log probabilities come together or not at all
gym.tokens.null | error | token fields are not null
gym.tokens.type | error | token ids are whole numbers, log probabilities are numbers
gym.tokens.negative | error | token ids are not below 0
gym.tokens.empty | warning | token fields hold tokens
gym.tokens.length | warning | every generated token has a log probability
gym.tokens.misplaced | warning | messages, reasoning and function calls carry tokens, nothing else does
gym.call.arguments | warning | the arguments of a call are a JSON object
gym.call.repeated | warning | a call has an id of its own
gym.call.unanswered | info | a call has an output
gym.result.unlinked | warning | an output names a call before it
gym.result.repeated | warning | a call has one output
gym.capture.type | error | `ng_model_call_capture` holds a list of calls
gym.capture.call_repeated | error | a captured call has an id of its own
gym.capture.other_row | warning | the captured calls are those of the row
gym.trajectory.type | error | `ng_trajectory` is an object of lists of objects
gym.trajectory.version | error | its version is 1.0
gym.trajectory.missing | error | a field that Gym wants of it
gym.trajectory.other_row | warning | it is of the row's rollout
gym.trajectory.invocation_repeated | error | an invocation has an id of its own
gym.trajectory.call_repeated | error | a call of the model has an id of its own
gym.trajectory.turn_identity | error | a turn is of the trajectory's task and rollout
gym.trajectory.turn_no | error | turns are numbered from 1
gym.trajectory.turn_repeated | error | a turn of an invocation has a number of its own
gym.trajectory.reference | error | a reference names a call, or a server and its response
gym.trajectory.reference_unknown | warning | a reference leads to one captured call
gym.trajectory.parent_cycle | error | no invocation is under itself
gym.trajectory.tool_time | error | a tool ends after it began
"""
_EXPORT = """
gym.export.trajectory | error | only rows with a trajectory of version 1.0 are exported
gym.export.gaps | error | Gym could not see all of the rollout
gym.export.identity | error | the indices of the rollout, or the name or version of its agent, are not there
gym.export.invocations | error | not exactly one agent that ran to its end
gym.export.item | error | an item that ATIF has no place for
gym.export.field | error | a field that would be dropped
gym.export.status | error | an item that is not completed
gym.export.role | error | a developer's message has no place
gym.export.later_turn | error | a message of a user or the system after output
gym.export.tokens | error | token ids and log probabilities are not exported
gym.export.content | error | a content that is not text alone
gym.export.reasoning | error | reasoning that is encrypted, empty, or in several pieces
gym.export.call | error | a call without id or name, or with the id of another
gym.export.arguments | error | the arguments of a call are no JSON object
gym.export.result | error | calls and results are not one for one
gym.export.tool_record | error | a tool was not seen to complete, or did something else
gym.export.turns | error | turns and conversation do not agree
gym.export.model_call | error | a turn is not of exactly one call of the model that succeeded
gym.export.finish | error | the finish reason does not prove a complete response
gym.export.usage | error | token counts that do not agree with each other
"""
_STRICT = """
gym.strict.version | error | only ATIF v1.7 is taken
gym.strict.total_steps | error | the totals count other steps than there are
gym.strict.no_agent_step | error | no step of the agent: nothing to score
gym.strict.continued | error | the trajectory goes on in another file
gym.strict.subagents | error | a sub-agent has no place in one response
gym.strict.media | error | an image or a sound cannot be kept as text
gym.strict.content | error | a content without parts, or with parts that are no text
gym.strict.copied_context | error | history of an earlier call would count as output
gym.strict.tokens | error | token ids and log probabilities are not carried
gym.strict.text_and_calls | error | text and calls in one step: nothing tells their order
gym.strict.model_calls | error | several calls of the model in one step have no order
gym.strict.later_turn | error | a user's or system's step after output would change what is scored
gym.strict.observation | error | a step that is not the agent's has an observation
gym.strict.call_id | error | a call has no id
gym.strict.call_name | error | a call has no name
gym.strict.call_repeated | error | two calls have one id
gym.strict.arguments | error | the arguments of a call are no JSON object
gym.strict.result_unlinked | error | a result names no call
gym.strict.result_unknown | error | a result names a call of another step, or none
gym.strict.result_repeated | error | a call has two results
gym.strict.result_missing | error | a call has no result
gym.strict.result_empty | error | a result has no content
gym.strict.result_twice | error | a result has a content and a structured one
gym.strict.timestamp | error | the last timestamp of the agent names no zone
gym.strict.models | error | the steps name different models, or not all name one
gym.strict.usage | error | token counts are partial, or do not agree with each other
gym.harbor.message | error | a message in parts, on which Harbor's mapping fails or writes Python into the text
"""

RULES: dict[str, Rule] = json_rules("gym") | table(_ROWS) | table(_EXPORT) | table(_STRICT)


def fault(rule: str, message: str, path: str = "", line: int | None = None, step: int | None = None) -> Fault:
    """A fault of the severity that its rule has."""
    return Fault(rule, RULES[rule].severity, message, path, line, step)
