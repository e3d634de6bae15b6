"""The rules on rows (contracts.md 4.0, 5.4), and what the profiles refuse (3.1, 3.2)."""

from ng_capture.contracts.careful_json import json_rules
from ng_capture.contracts.rules import Fault, Rule, table

_ROWS = """
gym.row.type | error | a row is a JSON object
gym.row.empty | error | a row has an input or an output
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
