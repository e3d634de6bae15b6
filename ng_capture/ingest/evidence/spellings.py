"""Where every engine puts ids and log probabilities, declared in one table (ingest.md 1.1). Reads, never makes."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from ng_capture.ingest.evidence.answers import Answer
from ng_capture.ingest.evidence.entries import content_entries, object_entries, triple_entries
from ng_capture.ingest.evidence.prompts import packed_prompt, sent_prompt, together_prompt, whole_input
from ng_capture.ingest.evidence.told import Told, a_list, one_of
from ng_capture.records.json_text import object_in, objects_in

BUNDLE = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
_PROXY = "provider_specific_fields"


class Spelling(msgspec.Struct, frozen=True):
    """A place of token fields, named as `origin` of what is read there."""

    origin: str
    read: Callable[[Answer], Iterable[Told]]


def bundle_carriers(answer: Answer) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The items of the output that carry NeMo Gym's bundle, each with its place."""
    items = a_list(answer.response.get("output")) or []
    for place, item in enumerate(items):
        if isinstance(item, dict) and any(item.get(field) is not None for field in BUNDLE):
            yield place, item


def _message(answer: Answer) -> Iterable[Told]:
    """NeMo Gym's bundle and Megatron's: on the message, moved aside by a proxy, or on an item of the output."""
    carriers = [answer.message, object_in(answer.message.get(_PROXY))]
    # more than one item is a fault of its own, and no two spellings of one fact
    carriers += [item for _, item in bundle_carriers(answer)][:1]
    for carrier in carriers:
        yield from one_of(*(carrier.get(field) for field in BUNDLE))


def _served(answer: Answer) -> Iterable[Told]:
    """vLLM, SGLang's OpenAI dialects, TensorRT-LLM, Fireworks, Tinker's endpoint; `prompt` at response or choice."""
    yield from one_of(answer.response.get("prompt_token_ids"))
    for carrier in (answer.choice, object_in(answer.choice.get(_PROXY))):
        yield from one_of(carrier.get("prompt_token_ids"), carrier.get("token_ids"))
        yield from one_of(None, carrier.get("response_token_ids"))


def _engine_data(answer: Answer) -> Iterable[Told]:
    """Dynamo, from the engine."""
    data = object_in(object_in(answer.response.get("nvext")).get("engine_data"))
    return one_of(data.get("prompt_token_ids"), data.get("completion_token_ids"), data.get("completion_logprobs"))


def _nvext(answer: Answer) -> Iterable[Told]:
    """Dynamo, from its frontend."""
    nvext = object_in(answer.response.get("nvext"))
    return one_of(nvext.get("prompt_token_ids"), nvext.get("completion_token_ids"))


def _sglext(answer: Answer) -> Iterable[Told]:
    """SGLang's extension: the prompt once, the generations of all choices in one list."""
    sglext = object_in(answer.response.get("sglext"))
    generations = a_list(sglext.get("output_ids")) or []
    own = generations[answer.index] if answer.index < len(generations) else None
    return one_of(sglext.get("input_ids"), own)


def _raw_output(answer: Answer) -> Iterable[Told]:
    """Fireworks."""
    raw = object_in(answer.choice.get("raw_output"))
    log_probs = raw.get("completion_logprobs")
    yield from one_of(raw.get("prompt_token_ids"), raw.get("completion_token_ids"), log_probs)
    yield from content_entries(log_probs, processed=answer.processed)


def _native(answer: Answer) -> Iterable[Told]:
    """SGLang's own dialect and LMDeploy: ids in a list, log probabilities with ids in another."""
    yield from one_of(None, answer.choice.get("output_ids"))
    yield from one_of(answer.meta_info.get("prompt_token_ids"))
    yield from triple_entries(answer.meta_info.get("output_token_logprobs"))
    yield from triple_entries(answer.choice.get("output_token_logprobs"))
    yield from whole_input(answer)


def _tokens(answer: Answer) -> Iterable[Told]:
    """llama.cpp's own dialect, Tinker's sequences, Ollama; `__verbose` is the first inside a chat completion."""
    verbose = object_in(answer.response.get("__verbose")) if answer.index == 0 else {}
    for carrier in (answer.choice, verbose):
        log_probs = a_list(carrier.get("logprobs"))
        in_entries = log_probs is not None and any(isinstance(each, dict) for each in log_probs)
        yield from one_of(None, carrier.get("tokens"), None if in_entries else log_probs)
        yield from object_entries(log_probs if in_entries and log_probs else [])
        yield from object_entries(a_list(carrier.get("completion_probabilities")) or [])


def _details(answer: Answer) -> Iterable[Told]:
    """TGI."""
    details = object_in(answer.choice.get("details"))
    prefill = [entry.get("id") for entry in objects_in(details.get("prefill"))]
    yield from one_of(prefill or None)
    yield from object_entries(a_list(details.get("tokens")) or [])


def _raw_messages(answer: Answer) -> Iterable[Told]:
    """vLLM's Responses; of several rounds nothing says which is prompt and which answer."""
    sides = [list(objects_in(answer.response.get(key))) for key in ("input_messages", "output_messages")]
    prompt, generation = (side[0].get("tokens") if len(side) == 1 else None for side in sides)
    return one_of(prompt, generation)


def _logprob_tokens(answer: Answer) -> Iterable[Told]:
    """Log probabilities whose texts are `token_id:N`, or that have an id beside the text, or none."""
    # Together answers an echo with a list of its own
    request, response = answer.request, answer.response
    echoed = request.get("echo") is True and not isinstance(response.get("prompt"), list) and "text" in answer.choice
    for told in content_entries(answer.choice.get("logprobs"), processed=answer.processed):
        yield msgspec.structs.replace(told, echoed=echoed)


SPELLINGS = (
    Spelling("message", _message),
    Spelling("served", _served),
    Spelling("served", packed_prompt),
    Spelling("engine_data", _engine_data),
    Spelling("nvext", _nvext),
    Spelling("sglext", _sglext),
    Spelling("raw_output", _raw_output),
    Spelling("native", _native),
    Spelling("tokens", _tokens),
    Spelling("details", _details),
    Spelling("raw_messages", _raw_messages),
    Spelling("logprob_tokens", _logprob_tokens),
    Spelling("echo", together_prompt),
    Spelling("request", sent_prompt),
)
"""All spellings; of those that agree the first gives its name."""
