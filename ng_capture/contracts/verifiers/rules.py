"""The rules of both records of verifiers (contracts.md 6)."""

from ng_capture.contracts.careful_json import json_rules
from ng_capture.contracts.rules import Fault, table

RULES = json_rules("verifiers") | table("""
verifiers.empty | error | the file holds no record
verifiers.line | error | a line is neither a row of results nor an episode of traces
verifiers.field.type | error | a field is of another type
verifiers.conversation.empty | error | a record holds neither a prompt nor a completion
verifiers.traces.none | error | an episode holds no trace: no agent ran
verifiers.node.message | error | a node holds no message
verifiers.node.parent | error | the parent of a node is no node before it
verifiers.node.tokens | warning | ids, mask and log probabilities of a node do not fit each other
verifiers.node.link | warning | a semantic parent is no node
verifiers.call.node | warning | a call made a node that is not there
verifiers.trajectory.unmatched | warning | a step of a trajectory is no turn of the completion
""")


def fault(rule: str, message: str, path: str = "", line: int | None = None) -> Fault:
    """A fault at the severity of its rule."""
    return Fault(rule, RULES[rule].severity, message, path, line)
