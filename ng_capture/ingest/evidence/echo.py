"""Completions with `echo`: the log probabilities begin with the prompt, and are cut where it ends (ingest.md 1.1)."""

import msgspec

from ng_capture.ingest.evidence.told import Told, Values


def without_echo(told: Told, prompt: Values | None, generation: Values | None) -> Told | None:
    """What was echoed is told as prompt, the rest as generation; None where nothing tells where the prompt ends.

    `prompt` and `generation` are what other spellings say.
    """
    ids, log_probs = told.generation, told.log_probs
    if not told.echoed or log_probs is None:
        return told
    if not prompt and generation is None:
        return None
    end = len(prompt) if prompt else max(len(log_probs) - len(generation or ()), 0)
    named = ids is not None and told.named
    return msgspec.structs.replace(
        told,
        prompt=ids[:end] if ids is not None and named else None,
        generation=ids[end:] if ids is not None and named else None,
        log_probs=log_probs[end:],
    )
