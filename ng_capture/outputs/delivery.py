"""Put a rebuilt response into the finished row of its rollout (capture-files.md 6.3).

Every value of the row that is not replaced keeps its bytes: numbers keep their digits, texts their escapes.
"""

from collections.abc import Mapping

import msgspec

from ng_capture.outputs.chunks import Chunk, object_of
from ng_capture.outputs.projection import NoProjection, Projection, project
from ng_capture.records.json_text import encode_json, members
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.judge import Judgement
from ng_capture.verdicts.metrics import Metrics

_METRICS = "_ng_token_capture"
_MASK = "mask_sample"
_CALLS = "ng_model_call_capture"


def deliver(
    judgement: Judgement, row: RolloutRow | None, data: bytes | None, calls: bytes | None = None
) -> list[list[Chunk]]:
    """The rows of a rollout, one per delivered chain: the finished row with its response rebuilt, or one around it.

    `calls` is what every row tells of the rollout's model calls, where that is wanted.
    """
    if row is not None and data is not None and row.carries_tokens:
        return [[data.strip()]] if calls is None else [object_of(members_of(judgement, data, calls))]
    built = project(judgement)
    masked = judgement.verdict == "masked"
    if isinstance(built, NoProjection):
        return [_marked(members_of(judgement, data, calls), judgement.metrics, built.error, masked=masked)]
    made = []
    for projection in built:
        members = members_of(judgement, data, calls)
        members["response"] = response_in(members, judgement.rollout_id, projection, row, model="")
        made.append(_marked(members, judgement.metrics, None, masked=masked))
    return made


def members_of(judgement: Judgement, data: bytes | None, calls: bytes | None = None) -> dict[str, list[Chunk]]:
    """The members of a finished row as they are spelled, of one that names its rollout where there is none."""
    row = _members(data) if data is not None else {"_ng_rollout_id": _encoded(judgement.rollout_id)}
    return _with_calls(row, calls)


def deliver_unjudged(data: bytes, error: str, calls: bytes | None = None) -> list[Chunk]:
    """A row whose capture cannot be named or read: masked, with the reason."""
    return _marked(_with_calls(_members(data), calls), Metrics(n_calls=0), error, masked=True)


def _with_calls(row: dict[str, list[Chunk]], calls: bytes | None) -> dict[str, list[Chunk]]:
    return row if calls is None else {**row, _CALLS: [calls]}


def response_in(
    row_members: Mapping[str, list[Chunk]], rollout_id: str, built: Projection, row: RolloutRow | None, *, model: str
) -> list[Chunk]:
    """The response of a finished row with the rebuilt items, or one of `model` around them where it has none."""
    captured = row_members.get("response")
    if row is None or row.evidence.response is None or captured is None:
        return built.response(rollout_id, model)
    inner = _members(b"".join(captured))
    inner["output"] = built.output
    return object_of(inner)


def _marked(row: dict[str, list[Chunk]], metrics: Metrics, error: str | None, *, masked: bool) -> list[Chunk]:
    told = msgspec.to_builtins(metrics)
    if error is not None:
        told["error"] = error
    row[_METRICS] = _encoded(told)
    if masked:
        row[_MASK] = [b"true"]
    return object_of(row)


def _members(data: bytes) -> dict[str, list[Chunk]]:
    """The members of a JSON object, each value as it is spelled."""
    try:
        raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        return {key: [bytes(value).strip()] for key, value in raw.items()}
    except msgspec.DecodeError:
        # it refuses lone surrogates, even in what it only passes on
        return {key: [value.encode()] for key, value in members(data.decode())}


def _encoded(value: object) -> list[Chunk]:
    return [encode_json(value)]
