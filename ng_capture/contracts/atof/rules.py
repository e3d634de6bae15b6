"""The rules of ATOF 0.1: on one event, on all of a stream (contracts.md 2.1)."""

from ng_capture.contracts.careful_json import json_rules
from ng_capture.contracts.rules import Fault, table

RULES = json_rules("atof") | table("""
atof.empty | error | the file holds no event
atof.draft | error | an event of the draft before 0.1: ScopeStart, ScopeEnd, Mark or StreamHeaderEvent
atof.event | error | a line is no JSON object
atof.kind | error | an event is a scope or a mark
atof.version | error | the version is "0.N"; another major version may mean anything
atof.field.missing | error | an event lacks a field
atof.field.type | error | a field is of another type
atof.timestamp.invalid | error | a timestamp is neither RFC 3339 text nor whole microseconds since 1970
atof.timestamp.naive | error | a timestamp names no zone; it is taken as UTC for the order of events
atof.scope_category | error | a scope event tells the start or the end
atof.category.unknown | warning | a category that ATOF does not know
atof.category.subtype | error | a scope of category custom names its subtype
atof.profile.tool_call_id | warning | a tool names no call; its result can only be linked by name and arguments
atof.attributes.order | warning | attributes are sorted and stand once
atof.attributes.unknown | warning | an attribute that is neither known nor a vendor's (with a dot)
atof.mark.scope_fields | error | a mark has neither scope_category nor attributes
atof.event.repeated | warning | an event stands twice
atof.scope.repeated | error | a scope starts or ends twice; the first one counts
atof.scope.uuid_mismatch | error | a start and the end that fits it have different uuids
atof.scope.end_without_start | error | a scope ends that never started
atof.scope.unfinished | info | a scope never ends: the run was cut there
atof.scope.order | error | a scope ends before it starts
atof.scope.fields | warning | start and end of a scope differ in name, category or parent
atof.parent.unknown | info | a parent is not in the file, as with the root of NeMo Relay
atof.parent.cycle | error | scopes are parents of one another in a circle
atof.parent.depth | error | scopes are nested deeper than anything that runs
atof.episode.empty | error | an agent's scope holds no conversation
""")


def fault(rule: str, message: str, path: str = "", line: int | None = None) -> Fault:
    """A fault at the severity of its rule."""
    return Fault(rule, RULES[rule].severity, message, path, line)
