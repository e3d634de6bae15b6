"""Token records of raw calls, made in memory: what `ingest` would write, for commands that only look."""

from collections.abc import Iterable, Sequence

import msgspec

from ng_capture.ingest.exchange import Exchange
from ng_capture.ingest.parents import presumed_parents
from ng_capture.records.json_text import encode_json
from ng_capture.records.placing import Placer
from ng_capture.records.snapshot import Snapshot
from ng_capture.records.token_entry import TokenEntry, Unreadable, decode_entry


def with_raw_records(snapshot: Snapshot, exchanges: Sequence[Exchange]) -> Snapshot:
    """The snapshot with a record for every raw call that has tokens; as it is where there are records already."""
    if snapshot.entries or not any(exchange.tokens for exchange in exchanges):
        return snapshot
    placer = Placer()
    for entry in _entries(snapshot, exchanges):
        placer.add(entry)
    return msgspec.structs.replace(snapshot, entries=placer.finish().entries)


def _entries(snapshot: Snapshot, exchanges: Sequence[Exchange]) -> Iterable[TokenEntry]:
    parents = presumed_parents(exchanges)
    with_tokens = {exchange.call_id for exchange in exchanges if exchange.tokens is not None}
    for exchange in exchanges:
        tokens, parent = exchange.tokens, parents[exchange.call_id]
        if tokens is None:
            continue
        record = {
            "rollout_id": snapshot.rollout_id,
            "model_call_id": exchange.call_id,
            "model": exchange.model,
            "prompt_token_ids": tokens.prompt,
            "generation_token_ids": tokens.generation,
            "generation_log_probs": tokens.log_probs,
            "response_id": exchange.response_id,
            "created_at": exchange.completed_at,
            "parent_call_id": parent,
            "parent_resolution": "root" if parent is None else "resolved" if parent in with_tokens else None,
        }
        try:
            yield decode_entry(encode_json(record), file=snapshot.capture_file, line=exchange.line)
        except Unreadable:
            # its tokens are partial or of no shape: the raw call stays without a record, which the verdict says
            continue
