"""The token fields of an item (contracts.md 3.4, 6; 4.0)."""

from typing import Any

from ng_capture.contracts.episode import Json, Tokens

TOKEN_KEYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
TOKEN_FIELDS = (*TOKEN_KEYS, "routed_experts")


def has_tokens(item: Json) -> bool:
    """True for an item that carries something in a token field, sound or not."""
    return any(item.get(key) is not None for key in TOKEN_FIELDS)


def is_placeholder(item: Json) -> bool:
    """True for fields that say that there are no tokens: none generated, or the one id 0 that is certain."""
    generated, log_probs = item.get("generation_token_ids"), item.get("generation_log_probs")
    return generated == [] or (generated == [0] and log_probs in ([], [0.0], None))


def read_tokens(item: Json) -> Tokens | None:
    """The token fields of an item; an array that is none counts as missing, None where all are."""
    prompt, generated = array_of(item.get("prompt_token_ids"), int), array_of(item.get("generation_token_ids"), int)
    log_probs = array_of(item.get("generation_log_probs"), int, float)
    tokens = Tokens(prompt, generated, log_probs, item.get("routed_experts"))
    return tokens if prompt is not None or generated is not None or log_probs else None


def array_of(values: object, *kinds: type) -> list[Any] | None:
    """A list of nothing but these, None for anything else; a truth value is no number."""
    return values if isinstance(values, list) and all(type(value) in kinds for value in values) else None


def write_tokens(tokens: Tokens) -> Json:
    """The token fields of complete tokens."""
    fields: dict[str, object] = {
        "prompt_token_ids": tokens.prompt_ids,
        "generation_token_ids": tokens.completion_ids,
        "generation_log_probs": tokens.log_probs,
    }
    return fields if tokens.routed_experts is None else {**fields, "routed_experts": tokens.routed_experts}
