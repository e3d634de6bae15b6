"""Prompt ids that were sent, packed or told in part (ingest.md 1.1, 1.5)."""

import base64
import binascii
from collections.abc import Iterable

from ng_capture.ingest.evidence.answers import Answer
from ng_capture.ingest.evidence.entries import triple_entries
from ng_capture.ingest.evidence.told import Told, Values, a_list, one_of
from ng_capture.records.json_text import object_in, objects_in
from ng_capture.records.usage import count, decode_usage

_SENT = ("input_ids", "token_ids", "prompt_token_ids", "prompt_tokens")


def sent_prompt(answer: Answer) -> Iterable[Told]:
    """Ids that the request holds in place of a text."""
    request = answer.request
    yield from one_of(_sent_as_prompt(answer))
    for key in _SENT:
        yield from one_of(request.get(key))
    yield from one_of(object_in(request.get("kv_transfer_params")).get("prompt_token_ids"))
    yield from one_of(object_in(request.get("nvext")).get("token_data"))
    chunks = a_list(object_in(request.get("prompt")).get("chunks"))
    if chunks:
        tokens = [a_list(object_in(chunk).get("tokens")) for chunk in chunks]
        # a chunk without tokens is an image
        yield from one_of([token for chunk in tokens for token in chunk or ()] if None not in tokens else None)


def packed_prompt(answer: Answer) -> Iterable[Told]:
    """`prompt_token_ids_b64` of TensorRT-LLM: 32-bit integers, little endian."""
    text = answer.response.get("prompt_token_ids_b64")
    if not isinstance(text, str):
        return
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return
    if len(data) % 4 == 0:
        yield Told(prompt=[int.from_bytes(data[at : at + 4], "little", signed=True) for at in range(0, len(data), 4)])


def whole_input(answer: Answer) -> Iterable[Told]:
    """The prompt of `input_token_logprobs`, where they are proven to begin with it."""
    counted = prompt_count(answer)
    for told in _input(answer):
        ids, log_probs = told.generation or [], told.log_probs or []
        begins = answer.request.get("logprob_start_len") == 0 and log_probs[0] is None
        if len(ids) == counted if counted is not None else begins:
            yield Told(prompt=ids)


def prompt_count(answer: Answer) -> int | None:
    """How many tokens the server counted in the prompt; a usage of several prompts says it of all together."""
    counted = count(answer.meta_info.get("prompt_tokens"))
    prompts = a_list(answer.request.get("prompt")) or []
    if counted is not None or (len(prompts) > 1 and not isinstance(prompts[0], int)):
        return counted
    return decode_usage(object_in(answer.response.get("usage"))).tokens_in


def speaks_against(answer: Answer, prompt: Values) -> bool:
    """True where what tells only a part of the prompt tells another one: its end, or its ids but for the first."""
    ends = [told.generation or [] for told in _input(answer)]
    positions = [a_list(carrier.get("prompt_logprobs")) for carrier in (answer.response, answer.choice)]
    return any(prompt[-len(end) :] != end for end in ends) or any(
        len(told) != len(prompt) or not all(map(_may_name, told, prompt)) for told in positions if told
    )


def _may_name(position: object, token: object) -> bool:
    """True where the candidates of a position have the id among them; the first position has none."""
    return not isinstance(position, dict) or str(token) in position


def _input(answer: Answer) -> Iterable[Told]:
    """The entries of `input_token_logprobs`, which need not begin where the prompt does."""
    return triple_entries(answer.meta_info.get("input_token_logprobs"))


def together_prompt(answer: Answer) -> Iterable[Told]:
    """`prompt[].logprobs.token_ids` of Together's echo."""
    for prompt in objects_in(answer.response.get("prompt")):
        yield from one_of(object_in(prompt.get("logprobs")).get("token_ids"))


def _sent_as_prompt(answer: Answer) -> Values | None:
    """`prompt` as ids; of several prompts the one that the choice answers."""
    prompt = a_list(answer.request.get("prompt"))
    if not prompt or any(isinstance(each, str) for each in prompt):
        return None
    if not all(isinstance(each, list) for each in prompt):
        return prompt
    each = count(answer.request.get("n")) or 1
    place = answer.index // each
    return a_list(prompt[place]) if place < len(prompt) else None
