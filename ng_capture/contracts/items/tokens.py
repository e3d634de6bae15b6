"""The token fields of an item (contracts.md 3.4, 6; 4.0)."""

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
    prompt, generated, log_probs = (item.get(key) for key in TOKEN_KEYS)
    tokens = Tokens(
        prompt if _are(prompt, int) else None,  # type: ignore[arg-type]
        generated if _are(generated, int) else None,  # type: ignore[arg-type]
        log_probs if _are(log_probs, int, float) else None,  # type: ignore[arg-type]
        item.get("routed_experts"),
    )
    return tokens if tokens.prompt_ids is not None or tokens.completion_ids is not None or tokens.log_probs else None


def write_tokens(tokens: Tokens) -> Json:
    """The token fields of complete tokens."""
    fields: dict[str, object] = {
        "prompt_token_ids": tokens.prompt_ids,
        "generation_token_ids": tokens.completion_ids,
        "generation_log_probs": tokens.log_probs,
    }
    return fields if tokens.routed_experts is None else {**fields, "routed_experts": tokens.routed_experts}


def _are(values: object, *kinds: type) -> bool:
    return isinstance(values, list) and all(type(value) in kinds for value in values)
