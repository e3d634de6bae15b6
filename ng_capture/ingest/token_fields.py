"""Where the engines put token ids and log probabilities in a response (ingest.md 1). Reads, never makes."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ng_capture.records.json_text import object_in, objects_in

_TOKEN_ID = "token_id:"


class RawTokens(msgspec.Struct, frozen=True):
    """The token fields of one answer as they stand there, unchecked; what is absent is None."""

    prompt: Sequence[object] | None
    generation: Sequence[object] | None
    log_probs: Sequence[object] | None

    @property
    def complete(self) -> bool:
        return self.prompt is not None and self.generation is not None and self.log_probs is not None


def read_tokens(response: Mapping[str, object]) -> RawTokens | None:
    """The token fields of a whole response, or None where it has none."""
    for carrier in _carriers(response):
        if "generation_token_ids" in carrier:
            return RawTokens(
                _list(carrier.get("prompt_token_ids")),
                _list(carrier.get("generation_token_ids")),
                _list(carrier.get("generation_log_probs")),
            )
    choice = next(objects_in(response.get("choices")), None)
    if choice is None:
        return None
    generation = _list(choice.get("token_ids")) or _list(choice.get("response_token_ids")) or _spelled_ids(choice)
    prompt = _list(response.get("prompt_token_ids")) or _list(choice.get("prompt_token_ids"))
    return RawTokens(prompt, generation, _log_probs(choice)) if generation is not None else None


def read_streamed_tokens(events: Iterable[Mapping[str, object]]) -> RawTokens | None:
    """The token fields of a stream: prompt ids once, ids and log probabilities a piece at a time."""
    prompt: Sequence[object] | None = None
    generation: list[object] = []
    log_probs: list[object] = []
    for event in events:
        choice = next(objects_in(event.get("choices")), {})
        prompt = prompt or _list(event.get("prompt_token_ids")) or _list(choice.get("prompt_token_ids"))
        generation += _list(choice.get("token_ids")) or _spelled_ids(choice) or ()
        log_probs += _log_probs(choice) or ()
    return RawTokens(prompt, generation, log_probs) if generation else None


def _carriers(response: Mapping[str, object]) -> Iterable[Mapping[str, object]]:
    """Where NeMo Gym's bundle may stand: an item of the output, a choice's message (capture-files.md 1.9)."""
    yield from objects_in(response.get("output"))
    yield from (object_in(choice.get("message")) for choice in objects_in(response.get("choices")))


def _spelled_ids(choice: Mapping[str, object]) -> Sequence[object] | None:
    """Ids that stand as `token_id:N` where the texts of tokens belong."""
    content = _content(choice)
    names = [entry.get("token") for entry in content]
    if not names or not all(isinstance(name, str) and name.startswith(_TOKEN_ID) for name in names):
        return None
    texts = [str(name).removeprefix(_TOKEN_ID) for name in names]
    # twenty digits are no id any more, and thousands of them no integer
    return [int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text for text in texts]


def _log_probs(choice: Mapping[str, object]) -> Sequence[object] | None:
    content = _content(choice)
    if content:
        return [entry.get("logprob") for entry in content]
    triples = _list(object_in(choice.get("meta_info")).get("output_token_logprobs"))
    return [triple[0] if isinstance(triple, list) and triple else None for triple in triples] if triples else None


def _content(choice: Mapping[str, object]) -> list[Mapping[str, object]]:
    return list(objects_in(object_in(choice.get("logprobs")).get("content")))


def _list(value: object) -> list[object] | None:
    return value if isinstance(value, list) else None
