"""The rules of ATIF documents (contracts.md 1.3): name, severity, meaning."""

from ng_capture.contracts.careful_json import json_rules
from ng_capture.contracts.rules import Rule, table

_TABLE = """
atif.foreign | error | the document is of another format, which is named
atif.root.type | error | a document is one JSON object
atif.schema_version.missing | error | a trajectory says which version of ATIF it is
atif.schema_version.unknown | error | the versions are ATIF-v1.0 to ATIF-v1.8
atif.field.missing | error | a required field is not there
atif.field.unknown | error | every object is closed: it has no other fields than those of ATIF
atif.field.type | error | a field holds a value of another type; numbers in texts and booleans are no integers
atif.number.range | error | a number is below 0, or no count of 64 bits; a warning where ATIF's own models let it pass
atif.version.field_too_new | warning | a field is newer than the version that the trajectory says it is
atif.legacy.session_id_required | warning | to ATIF-v1.6 a trajectory has a session_id
atif.steps.empty | error | a trajectory has at least one step
atif.step_id.sequence | error | steps are numbered 1, 2, 3, ...
atif.step.agent_only | error | a field that only an agent's step has; a warning for llm_call_count
atif.llm_call_count.zero | error | a step that no model made has no metrics and no reasoning; a warning for effort
atif.timestamp.format | error | a time is spelled as ISO 8601 says
atif.timestamp.naive | warning | a time has no offset
atif.timestamp.order | warning | a step is earlier than one before it
atif.tool_call.arguments | error | arguments are a JSON object, never a text
atif.tool_call.reused_id | warning | an id names two calls
atif.tool_call.no_result | warning | a call has no result in its step
atif.observation.source_call_id | error | a result names a call that is not in its step
atif.observation.unlinked | warning | a result names no call although its step has calls
atif.subagent_ref.unresolvable | error | a reference has neither trajectory_id nor trajectory_path; to v1.6 a warning
atif.subagent_ref.not_found | warning | a reference names no embedded trajectory and no file that is there
atif.subagent.trajectory_id | error | an embedded trajectory has a trajectory_id that no other in its list has
atif.subagent.unreferenced | info | no reference names an embedded trajectory
atif.continuation.not_found | warning | the file that goes on is not there
atif.content.part | error | a part is a text with text, or an image or a sound with source
atif.content.media_type | error | a media type that ATIF does not know, or of another kind than the part
atif.content.media_type_alias | info | a spelling of a media type that is read as another
atif.content.file_missing | warning | an image or sound is not where the document says
atif.metrics.cached_exceeds_prompt | warning | more tokens came from the cache than the prompt has
atif.metrics.length | warning | ids, log probabilities and counts of tokens do not fit each other
atif.metrics.logprob_positive | warning | the log of a probability is not above 0
atif.final_metrics.below_sum | warning | a total is less than its steps have together
atif.final_metrics.total_steps | warning | total_steps is not the number of steps, and no notes say why
"""

RULES: dict[str, Rule] = json_rules("atif") | table(_TABLE)
