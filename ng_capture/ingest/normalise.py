"""A raw call -> its answers with their token evidence, each judged by itself (ingest.md 4)."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.ingest.evidence.agreement import Evidence, evidence_of
from ng_capture.ingest.evidence.answers import Answer, answers_of
from ng_capture.ingest.evidence.ends import ABORT, End, count_of_answer, end_of, is_truncated, no_answer, refusal_of
from ng_capture.ingest.evidence.kind import continues_message, is_beam_search, kind_of
from ng_capture.ingest.evidence.routed import FoundRouted, routed_of
from ng_capture.ingest.evidence.said import said_in
from ng_capture.ingest.evidence.spellings import BUNDLE, bundle_carriers
from ng_capture.ingest.evidence.values import all_zero, are_ids, log_prob_faults
from ng_capture.ingest.messages import Turns, request_messages
from ng_capture.ingest.normalised import LogProbsKind, NormalisedCall
from ng_capture.ingest.raw import RawExchange
from ng_capture.records.assembling import assemble
from ng_capture.records.json_text import object_in, printable, told
from ng_capture.records.usage import decode_usage


class _Read(msgspec.Struct, frozen=True, eq=False):
    """One answer of a call, read in every respect."""

    answer: Answer
    evidence: Evidence
    end: End
    routed: FoundRouted


def normalise(
    call: RawExchange, *, log_probs_kind: LogProbsKind | None = None, turns: Turns | None = None
) -> tuple[NormalisedCall, ...]:
    """The answers of a call, one a choice; problems take away that they may be trained, never what was readable.

    `log_probs_kind` is what the operator knows of the server, `turns` are those of the rollout's other calls.
    """
    try:
        return tuple(_calls(call, log_probs_kind, turns or Turns()))
    except RecursionError:
        # nested deeper than can be compared or written: nothing of it is read
        bare = msgspec.structs.replace(call, request={}, response={}, events=())
        [empty] = _calls(bare, log_probs_kind, Turns())
        return (msgspec.structs.replace(empty, raw=call, problems=("invalid_record",)),)


def _calls(call: RawExchange, kind: LogProbsKind | None, turns: Turns) -> Iterator[NormalisedCall]:
    response = assemble(call.events) or call.response
    reads = [_read(answer) for answer in answers_of(call.request, response, processed=kind == "processed")]
    absent = no_answer(call, response)
    miscounted = _miscounted(response, reads)
    messages = request_messages(call.request, turns)
    name = call.call_id or f"line:{call.line}"
    for read in reads:
        answer, evidence = read.answer, read.evidence
        missing = () if absent else _missing(evidence)
        found = _problems(call, read, missing, miscounted=miscounted, several=len(reads) > 1)
        problems = (absent,) if absent else tuple(found)
        yield NormalisedCall(
            raw=call,
            call_id=name if len(reads) == 1 else f"{name}#{answer.index}",
            choice=answer.index,
            prompt_token_ids=evidence.prompt,
            generation_token_ids=evidence.generation,
            generation_log_probs=evidence.log_probs,
            log_probs_kind=kind_of(answer, kind),
            origin=evidence.generation_origin or evidence.prompt_origin,
            prompt_origin=evidence.prompt_origin,
            generation_origin=evidence.generation_origin,
            item_index=next((place for place, _ in bundle_carriers(answer)), None),
            model=_name(response.get("model")) or _name(call.request.get("model")),
            response_id=_name(response.get("id")) or _name(answer.meta_info.get("id")),
            finish=read.end.finish,
            native_finish=read.end.native,
            stop_token_in_ids=read.end.stop_token_in_ids,
            routed=read.routed.shape,
            routed_experts=read.routed.value,
            messages=messages,
            answer=said_in(answer),
            refusal=refusal_of(answer),
            problems=problems,
            missing=missing if "partial_tokens" in problems else (),
            warnings=tuple(_warnings(call, read)),
        )


def _read(answer: Answer) -> _Read:
    evidence = evidence_of(answer)
    tokens = len(evidence.prompt or ()) + len(evidence.generation or ())
    return _Read(answer, evidence, end_of(answer, evidence.generation), routed_of(answer, tokens))


def _missing(evidence: Evidence) -> tuple[str, ...]:
    """The token fields that are absent, empty or cut; nothing is missing of a generation that is known to be empty."""
    prompt = not evidence.prompt or evidence.cut
    generation = evidence.generation is None or (not evidence.generation and bool(evidence.log_probs))
    log_probs = not evidence.log_probs and evidence.generation != []
    return tuple(field for field, lacks in zip(BUNDLE, (prompt, generation, log_probs), strict=True) if lacks)


def _problems(
    call: RawExchange, read: _Read, missing: Sequence[str], *, miscounted: bool, several: bool
) -> Iterator[str]:
    """The names of what takes away that the answer may be trained."""
    evidence = read.evidence
    truncated = is_truncated(call, read.answer)
    empty = evidence.generation == [] and not evidence.log_probs
    if call.duplicate_key is not None:
        yield "duplicate_key"
    if several:
        yield "ambiguous_choices"
    if sum(1 for _ in bundle_carriers(read.answer)) > 1:
        yield "multiple_token_items"
    if is_beam_search(call.request):
        yield "beam_search"
    if truncated:
        yield "stream_truncated"
    elif read.end.finish == ABORT and not empty:
        yield "generation_aborted"
    if miscounted and not truncated:
        yield "token_count_mismatch"
    elif empty and not truncated:
        yield "empty_generation"
    if missing and not empty and not truncated:
        yield "partial_tokens" if len(missing) < len(BUNDLE) else "call_without_tokens"
    yield from _value_problems(evidence, nan=read.end.nan)


def _value_problems(evidence: Evidence, *, nan: bool) -> Iterator[str]:
    prompt, generation, log_probs = evidence.prompt, evidence.generation, evidence.log_probs
    if not evidence.agrees:
        yield "source_mismatch"
    if not are_ids(prompt or []) or not are_ids(generation or []):
        yield "bad_token_id"
    if evidence.agrees and generation and log_probs and len(generation) != len(log_probs):
        yield "logprob_length_mismatch"
    faults = set(log_prob_faults(log_probs or []))
    yield from sorted(faults | {"logprob_not_finite"} if nan else faults)


def _warnings(call: RawExchange, read: _Read) -> Iterator[str]:
    if call.lone_surrogate:
        yield "lone_surrogate"
    if read.evidence.trimmed:
        yield "ids_trimmed"
    if all_zero(read.evidence.log_probs or []):
        yield "logprob_all_zero"
    if continues_message(call.request, call.dialect):
        yield "continues_message"
    if read.routed.warning is not None:
        yield read.routed.warning


def _miscounted(response: Mapping[str, object], reads: Sequence[_Read]) -> bool:
    """True where the server counted another number of generated tokens than there are ids."""
    known = [read for read in reads if read.evidence.generation is not None]
    if len(known) < len(reads):
        return False
    ids = sum(len(read.evidence.generation or ()) for read in reads)
    # who trims a stop token may count without it
    fitting = {None, ids, ids - sum(read.evidence.trimmed for read in reads)}
    counts = [count_of_answer(read.answer) for read in reads]
    of_answers = None if None in counts else sum(each for each in counts if each is not None)
    return not {decode_usage(object_in(response.get("usage"))).tokens_out, of_answers} <= fitting


def _name(value: object) -> str | None:
    """The text of an id or a name; Megatron counts its responses."""
    if isinstance(value, str) and value:
        return printable(value)
    return str(told(value)) if type(value) is int else None
