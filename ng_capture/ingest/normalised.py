"""A call with its token evidence, judged by itself (ingest.md 4)."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from ng_capture.ingest.messages import Message
from ng_capture.ingest.raw import RawExchange

LogProbsKind = Literal["raw", "processed", "same", "unknown"]
"""Before or after temperature and the like; `same` where the request shows that both agree (ingest.md 1.3)."""


class Routed(msgspec.Struct, frozen=True):
    """The shape of the routed experts of a call."""

    rows: int
    layers: int
    topk: int


class NormalisedCall(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One answer of a call. Nothing in it is made: arrays are as they were served, None where they were not.

    `problems` take away that it may be trained, `warnings` do not; both are names of the registry. `missing` lists the
    fields that a call with `partial_tokens` lacks. `origin` is the spelling that ids and log probabilities were read
    from (`message`, `served`, `logprob_tokens`, `request`, ...); `prompt_origin` and `generation_origin` say it for
    each. `finish` is the reason in the words of the chat API, `native_finish` in the engine's.
    """

    raw: RawExchange
    call_id: str
    choice: int
    prompt_token_ids: Sequence[object] | None
    generation_token_ids: Sequence[object] | None
    generation_log_probs: Sequence[object] | None
    log_probs_kind: LogProbsKind
    origin: str | None
    prompt_origin: str | None
    generation_origin: str | None
    item_index: int | None
    model: str | None
    response_id: str | None
    finish: str | None
    native_finish: str | None
    stop_token_in_ids: bool | None
    routed: Routed | None
    routed_experts: object | None
    messages: tuple[Message, ...]
    answer: Message | None
    refusal: str | None
    problems: tuple[str, ...]
    missing: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def trainable(self) -> bool:
        return not self.problems
