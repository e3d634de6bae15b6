"""The rules of capture lines and of token records, by the names of the one registry (reasons.md; contracts.md 5.1)."""

from ng_capture.contracts.rules import Fault, Rule, pointer, table
from ng_capture.records.defects import Defect

_LINES = """
torn_tail | error | the last line has no line break and is no whole JSON object: the writer died, that call is lost
missing_newline | warning | the last line is whole, but has no line break: what is appended next would be glued to it
damaged_line | error | a line is not exactly one JSON object
nul_bytes | error | a run of zero bytes
not_one_object_per_line | error | the file holds JSON, but not one object a line
file_truncated | error | a compressed file ends inside its stream
bom | info | a byte order mark at the very start of a file, skipped
lone_surrogate | warning | a text holds an escaped half of a surrogate pair
capture_incomplete | warning | a call was lost: announced or marked, and not there
rollout_id_mismatch | error | a line names another rollout than its file
conflicting_records | error | one call id, two contents; the first counts
duplicate_record | info | one call id, the same content again; counted once
empty_capture | error | no call at all
"""
_EXCHANGES = """
capture.foreign_line | error | a line of another format
capture.call_id.missing | warning | a line names no call: nothing can be joined to it
capture.dialect.missing | warning | a line names no dialect; it is told by the shape of request and response
capture.dialect.unknown | error | a dialect other than responses, chat, messages
capture.field.type | error | a field of the line has another type than the format gives it
capture.field.unknown | info | a field that the format does not have
capture.request_missing | warning | the request was not captured, so nobody knows what was asked
capture.response_missing | error | no response was captured for an answered call
capture.stream_truncated | warning | a stream without a proper end: the answer is not whole
capture.error_category.missing | info | an error status without its category
capture.error_category.unknown | info | an error category that the format does not have
capture.times.order | warning | a call ends before it begins, or takes less than no time
capture.conversation_unavailable | error | no call has text: there are numbers only (`--metrics-only` takes them)
"""
_RECORDS = """
tokens.schema_too_new | error | the record's version is above the newest one understood
tokens.invalid_record | error | a JSON object that breaks the record's shape or consistency rules
tokens.digest_mismatch | error | a record's own digest or length does not fit its own ids
tokens.bad_token_id | error | an id is no plain integer in range
tokens.duplicate_key | error | a token field stands twice in one object
tokens.logprob_length_mismatch | error | another number of log probabilities than generated ids
tokens.logprob_missing | error | a generated token has no log probability
tokens.logprob_not_number | error | a log probability is no number
tokens.logprob_not_finite | error | a log probability is not finite
tokens.logprob_positive | error | a log probability above 1e-6
tokens.logprob_sentinel | error | a log probability that no sampled token can have
tokens.logprob_all_zero | warning | every log probability of a call is 0.0
tokens.multiple_token_items | error | more than one item of a response carries token fields
tokens.delta_unresolvable | error | a delta record whose full prompt cannot be put together
tokens.state_unreadable | error | the lifecycle file cannot be read, so marks may be lost
tokens.none | error | no call has prompt ids, generated ids and log probabilities
tokens.link_ambiguous | error | calls with the identical sequence fit equally well as the parent of a call
"""
RULES: dict[str, Rule] = {
    **table("\n".join(f"capture.{line}" for line in _LINES.strip().splitlines())),
    **table(_EXCHANGES),
    **table("\n".join(f"tokens.{line}" for line in _LINES.strip().splitlines())),
    **table(_RECORDS),
}


def fault(rule: str, message: str, path: str = "", line: int | None = None, file: str | None = None) -> Fault:
    """A fault with the severity of its rule."""
    return Fault(rule, RULES[rule].severity, message, path, line, file=file)


def fault_of(defect: Defect, family: str) -> Fault:
    """A defect of the project's reader as a fault; `family` is `capture` or `tokens`."""
    rule = RULES.get(f"{family}.{defect.reason}") or RULES[f"{family}.damaged_line"]
    return fault(rule.name, _message(defect, rule), _path(defect), defect.line, defect.file)


def _message(defect: Defect, rule: Rule) -> str:
    told = [f"call {defect.call}" if defect.call is not None else "", defect.detail or rule.meaning]
    for name in ("expected", "found", "tokens", "logprobs", "count"):
        value = getattr(defect, name)
        told.append(f"{name} {value}" if value is not None else "")
    return ", ".join(filter(None, told))


def _path(defect: Defect) -> str:
    """The array that a position is counted in."""
    if defect.position is None:
        return ""
    if defect.reason.startswith("logprob"):
        return pointer("generation_log_probs", defect.position)
    return pointer(f"{defect.detail or 'generation'}_token_ids", defect.position)
