"""Which log probabilities were served: before or after temperature and the like (ingest.md 1.3)."""

from collections.abc import Iterator, Mapping

from ng_capture.ingest.evidence.answers import Answer
from ng_capture.ingest.evidence.told import a_list
from ng_capture.ingest.normalised import LogProbsKind
from ng_capture.records.json_text import object_in, objects_in

_NEUTRAL: Mapping[str, tuple[float, ...]] = {
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "typical_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "repeat_penalty": (1,),
}
_SHAPING = ("logit_bias", "allowed_token_ids", "bad_words", "min_tokens", "min_new_tokens", "response_format")


def kind_of(answer: Answer, told: LogProbsKind | None) -> LogProbsKind:
    """What the response itself shows, else what was told, else what the request proves."""
    entries = list(objects_in(answer.choice.get("completion_probabilities")))
    if entries:
        # llama.cpp: softmax over the raw logits, or the probability after its samplers
        return "raw" if "logprob" in entries[0] else "processed"
    if _has_both(answer):
        return "processed" if answer.processed else "raw"
    if told is not None:
        return told
    return "same" if _agree(answer.request) else "unknown"


def is_beam_search(request: Mapping[str, object]) -> bool:
    """True where the request asks for beams."""
    for parameters in _parameters(request):
        beams = parameters.get("num_beams")
        if parameters.get("use_beam_search") is True or (type(beams) is int and beams > 1):
            return True
    return False


def continues_message(request: Mapping[str, object], dialect: str | None) -> bool:
    """True where the last message of the request is the beginning of the answer."""
    if request.get("continue_final_message") is True:
        return True
    messages = a_list(request.get("messages"))
    last = object_in(messages[-1]) if messages else {}
    begun = dialect == "messages" or last.get("prefix") is True
    return begun and last.get("role") == "assistant"


def _agree(request: Mapping[str, object]) -> bool:
    """True for temperature 1 and nothing else that changes what is sampled from."""
    merged = {key: value for parameters in _parameters(request) for key, value in parameters.items()}
    if not _is(merged.get("temperature"), (1,)):
        return False
    neutral = all(merged.get(key) is None or _is(merged[key], values) for key, values in _NEUTRAL.items())
    return neutral and not any(merged.get(key) for key in _SHAPING)


def _is(value: object, numbers: tuple[float, ...]) -> bool:
    return type(value) in (int, float) and value in numbers


def _parameters(request: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Where sampling parameters stand: the request, and what SGLang, vLLM, Tinker and TGI put around them."""
    yield request
    for key in ("sampling_params", "parameters", "options", "extra_body"):
        yield object_in(request.get(key))


def _has_both(answer: Answer) -> bool:
    """True where each token has the model's and the sampler's (Fireworks)."""
    for carrier in (
        object_in(answer.choice.get("logprobs")),
        object_in(object_in(answer.choice.get("raw_output")).get("completion_logprobs")),
    ):
        if any("sampling_logprob" in entry for entry in objects_in(carrier.get("content"))):
            return True
    return False
