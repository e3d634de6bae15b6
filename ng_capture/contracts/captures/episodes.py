"""The rollouts of captures as episodes (contracts.md 3.5)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ng_capture.contracts.captures.chains import forest_of
from ng_capture.contracts.captures.exchange import Exchange, Shared, exchange_of, exchange_of_record
from ng_capture.contracts.captures.exchange_lines import ExchangeLine
from ng_capture.contracts.captures.gathering import EXCHANGES, RECORDS, Gap, Gathered, gather
from ng_capture.contracts.captures.parents import links_of
from ng_capture.contracts.captures.rules import fault
from ng_capture.contracts.captures.threads import strand_of
from ng_capture.contracts.captures.token_records import Recorded, Records, read_records
from ng_capture.contracts.episode import Episode, Json
from ng_capture.contracts.interface import Options, Read, Refused
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.contracts.sources import Source
from ng_capture.files.names import FileKind
from ng_capture.records.usage import total_usage

READ_LOSSES = frozenset(
    (
        *("conversation_unavailable", "copied_context", "history_rewritten", "subagent_parent_unknown"),
        *("failed_call_omitted", "retry_collapsed", "tool_output_not_captured", "reward_unavailable"),
        *("request_fields_dropped", "stream_rebuilt", "choice_dropped", "content_type_unsupported"),
        *("think_tags_split", "think_tags_in_text", "item_order_changed"),
        *("output_unlinked", "output_duplicate", "link_by_position", "link_ambiguous"),
        *("tokens_placeholder", "tokens_dropped", "tokens_incomplete", "tokens_multiple_items"),
    )
)
"""The codes that reading captures may report."""
_LINKS = frozenset({"model", "previous_response_id", "conversation", "prompt_cache_key"})
"""Parameters that differ from call to call by nature, or that the call itself tells."""


def read(
    source: Source, options: Options, contract: str = "capture", kinds: frozenset[FileKind] = EXCHANGES | RECORDS
) -> Iterator[Read | Refused]:
    """An episode for each rollout, one at a time; raises SurroundingsError."""
    for gathered in gather(source, kinds, options.selection):
        yield gathered if isinstance(gathered, Refused) else episode_of(gathered, options, contract)


def episode_of(gathered: Gathered, options: Options, contract: str = "capture") -> Read | Refused:
    """The episode of the lines of a rollout."""
    records = read_records(gathered.entries)
    lines, repeats = once_each(gathered.exchanges)
    faults = (*gathered.faults, *records.faults, *repeats)
    if any(fault.rule == "tokens.conflicting_records" for fault in records.faults):
        gathered = msgspec.structs.replace(gathered, gaps=(*gathered.gaps, ("token_records_conflicting", None)))
    calls = _Calls(lines, records, options)
    exchanges = _in_order(calls.exchanges)
    if not exchanges:
        return _refused(gathered, faults, "capture.empty_capture", "no call that can be read")
    if not options.metrics_only and not any(_says_something(each) for each in exchanges):
        return _refused(gathered, faults, "capture.conversation_unavailable", "no call has text, only numbers")
    return msgspec.structs.replace(_episode(gathered, exchanges, calls.choices, options, contract), faults=faults)


def once_each(lines: Iterable[ExchangeLine]) -> tuple[list[ExchangeLine], list[Fault]]:
    """One line a call id, in the order of the first ones; of several the one that says most."""
    found: dict[object, ExchangeLine] = {}
    faults = list[Fault]()
    for number, line in enumerate(lines):
        key = line.raw.call_id or number
        known = found.setdefault(key, line)
        if known is line:
            continue
        rule = "capture.duplicate_record" if known.data.strip() == line.data.strip() else "capture.conflicting_records"
        faults.append(fault(rule, f"call {line.raw.call_id} is there twice", line=line.raw.line, file=line.file))
        if _weight(line) > _weight(known):
            found[key] = msgspec.structs.replace(line, index=known.index)
    return list(found.values()), faults


def _weight(line: ExchangeLine) -> tuple[bool, int, int]:
    return line.raw.answered, line.raw.usage.tokens_out or 0, len(line.data)


class _Calls:
    """The calls of a rollout, each with its raw exchange, its token record, or both."""

    def __init__(self, lines: Sequence[ExchangeLine], records: Records, options: Options) -> None:
        shared = Shared()
        joined = {line.raw.call_id: _record_of(line.raw.call_id, records.by_call) for line in lines}
        taken = {record.call_id for record in joined.values() if record is not None}
        self.exchanges = [exchange_of(line, joined[line.raw.call_id], options, shared) for line in lines]
        self.choices = list[Exchange]()
        index = max((line.index for line in lines), default=-1) + 1
        for record in records.by_call.values():
            if record.call_id not in taken:
                made = exchange_of_record(record, index, options)
                (self.choices if record.entry.choice_of in joined else self.exchanges).append(made)
                index += 1


def _record_of(call_id: str, records: Mapping[str, Recorded]) -> Recorded | None:
    """The token record of a raw call; of a call with several answers that of the first."""
    return (records.get(call_id) or records.get(f"{call_id}#0")) if call_id else None


def _in_order(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The calls as they ended; as they stand where some end at no known time."""
    timed = all(each.call.completed_at is not None for each in exchanges)
    return sorted(exchanges, key=lambda each: (each.call.completed_at or 0.0 if timed else 0.0, each.call.index or 0))


def _says_something(exchange: Exchange) -> bool:
    answer = exchange.answer
    return bool(exchange.turns or answer.content or answer.calls or answer.thoughts) or exchange.record is not None


def _episode(
    gathered: Gathered, exchanges: Sequence[Exchange], choices: Sequence[Exchange], options: Options, contract: str
) -> Read:
    forest = forest_of(exchanges, links_of(exchanges))
    main = strand_of(forest, exchanges, gathered.rollout_id, options.session_id or gathered.rollout_id)
    failed = [exchanges[at] for at in forest.failed]
    repeated = [exchanges[at] for at in forest.repeated]
    told = [each for each in exchanges if each not in failed]
    parameters = next((each.parameters for each in main.exchanges), None)
    episode = Episode(
        contract=contract,
        main=main.thread(total_usage(each.call.usage for each in exchanges), _extra(gathered.gaps, failed, repeated)),
        rollout_id=gathered.rollout_id,
        request=parameters,
        omitted=tuple(each.answer for each in _in_order([*failed, *repeated, *choices])),
    )
    losses = (
        *main.losses(),
        *(Loss("failed_call_omitted", _place(each), detail=each.category) for each in failed),
        *(Loss("retry_collapsed", _place(each)) for each in repeated),
        *_parameters_lost(parameters or {}, told),
        Loss("reward_unavailable"),
    )
    return Read(episode, losses, gathered.faults, gathered.rollout_id)


def _extra(gaps: Sequence[Gap], failed: Sequence[Exchange], repeated: Sequence[Exchange]) -> Json | None:
    """What the main thread says of calls that are in no thread."""
    told: dict[str, object] = {}
    if gaps:
        told["gaps"] = [{"code": code} | ({"detail": detail} if detail else {}) for code, detail in gaps]
    if failed:
        told["failed_calls"] = dict(sorted(Counter(each.category for each in failed).items()))
    if repeated:
        told["repeated_calls"] = len(repeated)
    return {"ng_capture": told} if told else None


def _parameters_lost(first: Json, exchanges: Iterable[Exchange]) -> Iterator[Loss]:
    """Parameters in which a request differs from the first one of the main thread."""
    for exchange in exchanges:
        for key in dict.fromkeys((*first, *(exchange.parameters or {}))):
            if exchange.parameters is not None and key not in _LINKS and exchange.parameters.get(key) != first.get(key):
                yield Loss("request_fields_dropped", f"{_place(exchange)}{pointer('request', key)}", detail=key)


def _place(exchange: Exchange) -> str:
    return pointer(exchange.call.index or 0)


def _refused(gathered: Gathered, faults: Sequence[Fault], rule: str, message: str) -> Refused:
    return Refused((*faults, fault(rule, message)), place=gathered.rollout_id)
