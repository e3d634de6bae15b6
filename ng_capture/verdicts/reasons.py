"""The one registry of reasons: name, severity, meaning, what to do (code, command line and documents have no other)."""

from typing import Literal, cast

import msgspec

Severity = Literal["error", "warning", "info"]

CONSEQUENCES: dict[Severity, str] = {
    "error": "masks: of a call, what is delivered through it; of a file or of completeness, the whole rollout",
    "warning": "is reported and masks nothing",
    "info": "is part of the account and masks nothing",
}


class Reason(msgspec.Struct, frozen=True):
    """What a finding, a verdict, a note, a refusal or a plan may be called."""

    name: str
    severity: Severity
    meaning: str
    what_to_do: str
    section: str


_TABLE = """
# Lines and files
torn_tail | error | the last line has no line break and is no whole JSON object | the writer died in an append: that call is lost, run the rollout again
missing_newline | error | the last line is a whole record without a line break | see that the writer has ended before anything appends: the next record would be glued to it
damaged_line | error | a line is not exactly one JSON object (cut, fused, text behind it, not UTF-8, a byte order mark before a later one, bare NaN in a token record) | look at the line; find the second writer or the bad copy; the good lines around it are kept
nul_bytes | error | a run of zero bytes | power cut or full disk: take the file from a backup, or leave it masked
not_one_object_per_line | error | the file holds JSON, but not one object a line (indented, or one array) | write it as JSONL first
file_truncated | error | a compressed file ends inside a member or frame | copy it again; if the source is cut too, its last calls are lost
duplicate_key | error | a token field stands twice in one object, and parsers differ on which counts | mend the writer; nothing says which value is true
bom | info | a byte order mark at the very start of a file, skipped | nothing
lone_surrogate | warning | a text holds an escaped half of a surrogate pair | nothing for the tokens; the text is written escaped or replaced
bad_rollout_id | error | an id that must not become a file name | give the rollout an id of [A-Za-z0-9][A-Za-z0-9._-]*
rollout_frozen | error | the rollout is sealed and takes no further calls | give the calls a rollout of their own, or ingest before it is sealed
case_collision | error | two ids that differ only in upper and lower case | rename one
# Records
schema_too_new | error | the record's version is above the newest one understood | update ng-capture
invalid_record | error | a JSON object that breaks the record's shape or consistency rules | look at the field named; the writer and the format disagree
digest_mismatch | error | a record's own digest or length does not fit its own ids | the tokens were changed after sampling: find what rewrites records
conflicting_records | error | one call id, two contents | two runs wrote one rollout, or an id was used twice; keep one, by hand
duplicate_record | info | one call id, the same content again; counted once (repeated_lines) | nothing; a transport that retries
rollout_id_mismatch | error | a record names another rollout than its file, or two sources of one call's rollout id differ | see which is right and name it (--rollout-id, --rollout-from)
foreign_model | info | a call of another model than the policy model named; left out, never trained | nothing, if the harness uses helper models
# Ids and log probabilities
bad_token_id | error | an id is no plain JSON integer in range (negative, too large, float, bool, string, nested, malformed token_id:N) | find what converts the ids; padding and placeholders are no tokens
float_token_id | warning | an integral float id (5.0) was taken as an integer because the caller allowed it | ask the engine for integers
token_out_of_vocab | error | an id is not in the vocabulary that was given | name the tokenizer of the policy
empty_prompt | error | a call that names a parent and has no prompt ids (a first call may be unconditional: no_predecessor) | such a call cannot have been made: find who invents the turn
logprob_length_mismatch | error | another number of log probabilities than generated ids, and nothing to align them by | mend the engine or the proxy; never pad, never cut
logprob_missing | error | a generated token has no log probability: null, or no entry at a known position | the engine had none (NaN written as null, a byte token, a dropped stop token); see its version
logprob_not_number | error | a log probability is a string or a bool | mend the serialiser
logprob_not_finite | error | a log probability is NaN or infinite | numerical failure in the engine; the token was not sampled from what was recorded
logprob_positive | error | a log probability above 1e-6 | these are logits or probabilities: see the engine's log-probability mode
logprob_sentinel | error | a value that no sampled token can have (-9999 or lower, the lowest float) | the engine clamped it or had no entry
logprob_all_zero | warning | every log probability of a call (more than 3 tokens) is 0.0: greedy sampling, or none were returned | ask for log probabilities, or sample with a temperature
ids_trimmed | warning | the id list lacks a stop token that the log probabilities name; the ids were taken from there | nothing; an engine that trims stop tokens
routed_experts_malformed | warning | routed experts that fit no shape; dropped | replay without them, or mend the writer
routed_experts_one_short | warning | one row fewer than tokens: the last token was not forwarded | nothing; marked as missing
routed_experts_missing | warning | some calls of a chain have routed experts and others none; all rows marked missing | switch them on for the whole run
# Links and chains
prefix_mismatch | error | a call's prompt does not begin with its parent's whole sequence | ng-capture explain: chat template, lost reasoning, text tokenised again, changed history
parent_missing | error | the call names a parent that has no record | a record was lost, or its call was never captured
parent_unresolved | error | the server could not tell the parent when the call was made | history was rewritten or compacted: declare it, or tag sub-agents
parent_cycle | error | the links to the parents run in a circle | ids collided or a file was edited
ambiguous_parent | error | links are inferred and calls that differ fit equally well | record links when the call is made
identical_parents | info | links are inferred and several calls hold the identical sequence; the smallest call id is taken | nothing
link_missing | error | a record carries no link information where others do, or where none is inferred | use a writer that records links
delta_unresolvable | error | a delta record whose full prompt cannot be put together | its parent's record was lost
prefix_supply_unproven | warning | the server asked the engine to start from the parent's tokens and the prompt ids do not prove it | see whether the engine honours the required prefix
media_mismatch | error | the ids fit, the images or sounds behind them differ | send the same media bytes again in later turns
multiple_roots | error | more than one first call, and nothing that names the right chain | name the scored call, tag sub-agents, or use policy all
multiple_ends | error | one first call, more than one last call, and nothing that names the right one | the same
ambiguous_retry | error | several answers to one prompt; nothing extends or names one of them | give the finished row the id of the answer that was kept
# Terminal
terminal_not_captured | error | the call that was scored has no usable record: absent, nothing generated, or a delta that cannot be rebuilt | the scored answer was not made through the capture address, or its record was lost
terminal_ambiguous | error | the evidence names several calls with different sequences | name the scored call by its call id
witness_disagreement | error | witnesses name different calls | see which one the harness means; compare response ids
terminal_chain_broken | error | the chain of the scored call holds a broken link or a faulty record, whose own reason stands beside it | see that reason
terminal_unconfirmed | warning | the scored response fits no record, but the rollout is one single chain and its intents prove that no call is missing | name the terminal call in the row
# Completeness
capture_incomplete | error | an announced call has no record, or the rollout is marked incomplete | a call was lost or not capturable: server log, other paths under the capture address
empty_capture | error | no record at all | see that calls go through the capture address
no_generated_tokens | error | there are records and none of them generated anything | aborted or refused calls only: see the engine
empty_generation | info | a call that generated nothing; not part of a chain, its children join through it | nothing
state_unreadable | error | the lifecycle file cannot be read, so marks may be lost | restore the file, or delete the rollout by id
retired | error | the payload was dropped after hand-off; only the tombstone is left | nothing, if a receipt covers it; else restore it from the trash
no_calls_captured | error | no rollout of the run has a captured call | point the harness at the capture address
missing_captures | error | rollouts that were asked for have no capture | the collector died, or ids do not match
orphan_captures | error | captures that belong to no rollout asked for | ids do not match: name files by the rollout id
no_trainable_rollouts | error | not one rollout is trainable | see the reasons by count
# Raw calls
call_without_tokens | error | a successful raw call that has no token record and no ids of its own | ask the engine for ids (ingest.md 1.1), or call it by a path that captures them
partial_tokens | error | one or two of prompt ids, generated ids, log probabilities are absent, null, empty or cut; missing lists them by field name | ask the engine for the fields in missing
token_count_mismatch | error | the server's usage counts another number of generated tokens than there are ids | a parser or a stream swallowed ids: update the engine
source_mismatch | error | two spellings of one fact in one response disagree | take out the proxy or adapter that rewrites one of them
stream_truncated | error | a stream without a proper end | the connection broke: the answer is not whole
ambiguous_choices | error | one call with several choices and nothing that names the kept one | ask for one choice (n: 1)
multiple_token_items | error | more than one item of a response carries token fields | mend the adapter: one bundle a call
beam_search | error | the ids come from a beam, not from sampling the policy | sample
generation_aborted | error | the engine aborted the generation; what it has is no whole answer | nothing, if it was asked again
response_missing | error | no response was captured for an answered call | see the proxy or the capture's own errors
no_output | error | an answered call with no choice and no item | see the server
http_error | info | the server refused the call; counted apart (failed_calls), not missed | see status and category
continues_message | warning | the request continues the last assistant message: that part was not sampled in this call | know that it is prompt, not answer
text_only_source | error | a log format that cannot hold token ids (OpenTelemetry, Langfuse, Claude Code, Codex); refused | capture at the model server
# Training rows: notes and token accounting
new_root | warning | policy all: the link to the parent failed, so the call begins a row of its own | see the reason beside it
excluded | warning | policy all: the call is left out of loss, or out of the rows if it cannot be rebuilt | see the reason beside it
no_predecessor | info | a generated token at position 0: nothing predicts it, so it is context | nothing
abandoned_retry | info | an answer that was asked again and not kept; never trained | nothing
after_terminal | info | a call later than the scored one | nothing
off_path | info | a call on another chain than the delivered one (sub-agent, side call, branch) | policy all trains it
length_stopped | info | the generation stopped at its limit (truncated); masked only with --mask-truncated | raise the limit, or mask
mixed_weight_versions | info | calls of one rollout were sampled from different weights; each call keeps its version | filter by age where the trainer wants it
# Export
over_max_length | warning | longer than --max-length: dropped or cut as --on-overflow says | raise the limit
no_trainable_tokens | warning | after the cut no trained token is left; no row | raise the limit
reward_missing | warning | the format needs a reward and the finished row has none | give the finished rows (--rollouts), or name the field (--reward-field)
below_min_trainable | warning | fewer trained tokens than --min-trainable; no row | lower it
messages_missing | warning | no raw call holds the whole conversation of the chain as text: none is there, it has no answer, it rests on history that the server held, or it holds media; no row | keep .capture.jsonl beside the tokens, or export tokens
advantage_missing | warning | the trainer takes advantages from the rows, and nobody in its group is there to compare the rollout with; no row | sample more rollouts of a task, or --advantage mean-centred
group_missing | warning | the finished row names no group, so there is nothing to compare the rollout with, or to pair it with | give the finished rows (--rollouts), or name the field (--group-by)
prompts_differ | warning | the best and the worst rollout of a group were not asked the same first; no pair | see what is put into the prompt: a date, a path, an id
unpaired | info | neither the best nor the worst rollout of its group; in no pair | nothing
reward_gap_small | warning | the rewards of the best and the worst rollout of a group are not far enough apart; no pair | lower --min-gap; where all are equal the task is too easy or too hard
# gc: why a rollout or file is kept
masked | info | evidence of a masked rollout | --include-masked, once you know why
no_receipt | info | no receipt covers it | --delivered-to RECEIPT
changed_since_receipt | info | its bytes no longer have the receipt's digests | rebuild, then clean
young | info | a file or the newest record is younger than the limit | wait
time_in_future | warning | a file's time lies in the future: never old | set the clock or the file's time right
busy | info | another process holds its lock | the next run takes it
unknown_file | info | no file of a rollout: never touched, no obstacle to its neighbours | remove it by hand
symbolic_link | warning | a link where a file was expected: not followed | look where it points
not_removable | error | the system refused to move it; the rest is done, exit 3 | permissions, or a directory in its place
"""


def _parsed() -> dict[str, Reason]:
    reasons, section = {}, ""
    for line in _TABLE.strip().splitlines():
        if line.startswith("# "):
            section = line[2:]
            continue
        name, severity, meaning, what_to_do = line.split(" | ")
        reasons[name] = Reason(name, cast("Severity", severity), meaning, what_to_do, section)
    return reasons


REASONS = _parsed()
"""Every reason by its name, in the order of the registry."""

_RANK = {name: rank for rank, name in enumerate(REASONS)}


def severity_of(name: str) -> Severity:
    """The severity of a reason; KeyError for a name that the registry does not have."""
    return REASONS[name].severity


def in_order(names: frozenset[str]) -> tuple[str, ...]:
    """Names in the order of the registry."""
    return tuple(sorted(names, key=_RANK.__getitem__))
