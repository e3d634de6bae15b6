"""One answer, [1, 2] -> [5, 9] at [-0.5, -0.1], as every engine spells it."""

import base64
from typing import Any

import msgspec

from ng_capture.ingest.raw import RawExchange
from tests.support.forge import Row
from tests.support.raw_exchanges import asked, streamed_as

PROMPT, GENERATION, LOG_PROBS = [1, 2], [5, 9], [-0.5, -0.1]
BUNDLE: Row = {"prompt_token_ids": PROMPT, "generation_token_ids": GENERATION, "generation_log_probs": LOG_PROBS}
TRIPLES = [[-0.5, 5, None], [-0.1, 9, None]]
INPUT = [[None, 1, None], [-2.0, 2, None]]
TEXTS: Row = {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -0.1}]}
SPELLED: Row = {"content": [{"token": "token_id:5", "logprob": -0.5}, {"token": "token_id:9", "logprob": -0.1}]}
BESIDE: Row = {
    "content": [{"token": "a", "token_id": 5, "logprob": -0.5}, {"token": "b", "token_id": 9, "logprob": -0.1}]
}
LISTS: Row = {"tokens": ["a", "b"], "token_logprobs": LOG_PROBS}
PACKED = base64.b64encode(b"\1\0\0\0\2\0\0\0").decode()
ENTRIES = [{"id": 5, "token": "a", "logprob": -0.5}, {"id": 9, "token": "b", "logprob": -0.1}]
SENT: Row = {"prompt": PROMPT}


def chat(choice: Row, **response: Any) -> Row:
    message = {"role": "assistant", "content": "a"}
    return {"id": "r1", "choices": [{"index": 0, "finish_reason": "stop", "message": message, **choice}], **response}


def text(choice: Row, **response: Any) -> Row:
    return {"id": "r1", "choices": [{"index": 0, "finish_reason": "stop", "text": "a", **choice}], **response}


def delta(choice: Row, finish: str | None = None, **response: Any) -> Row:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": finish, **choice}], **response}


def entry(place: int) -> Row:
    return {"content": SPELLED["content"][place : place + 1]}


class Engine(msgspec.Struct, frozen=True):
    """A call of an engine, and the origins of its prompt and its generation."""

    call: RawExchange
    prompt_origin: str
    generation_origin: str


def _engine(request: Row, response: Row, prompt: str, generation: str) -> Engine:
    return Engine(asked(request, response), prompt, generation)


def _streamed(events: list[Row], prompt: str, generation: str, request: Row | None = None) -> Engine:
    return Engine(streamed_as(events, request), prompt, generation)


SERVED = {"token_ids": GENERATION}
ENGINES: dict[str, Engine] = {
    "Gym and Megatron, chat": _engine({}, chat({"message": BUNDLE}), "message", "message"),
    "Gym, Responses": _engine({}, {"output": [{"type": "reasoning"}, {"type": "message", **BUNDLE}]}, *["message"] * 2),
    "Gym, a bundle on a call": _engine(
        {}, {"output": [{"type": "function_call", "name": "f", **BUNDLE}, {"type": "message"}]}, *["message"] * 2
    ),
    "vLLM, chat": _engine({}, chat({**SERVED, "logprobs": TEXTS}, prompt_token_ids=PROMPT), *["served"] * 2),
    "vLLM, tokens as ids": _engine(
        {}, chat({"logprobs": SPELLED}, prompt_token_ids=PROMPT), "served", "logprob_tokens"
    ),
    "vLLM, completions": _engine(
        {}, text({"prompt_token_ids": PROMPT, **SERVED, "logprobs": LISTS}), "served", "served"
    ),
    "vLLM, completions, tokens as ids": _engine(
        SENT, text({"logprobs": {**LISTS, "tokens": ["token_id:5", "token_id:9"]}}), "request", "logprob_tokens"
    ),
    "vLLM, token endpoint": _engine(
        {"token_ids": PROMPT}, {"choices": [{"index": 0, **SERVED, "logprobs": BESIDE}]}, "request", "served"
    ),
    "vLLM, disaggregated": _engine(
        {"kv_transfer_params": {"prompt_token_ids": PROMPT}}, chat({**SERVED, "logprobs": TEXTS}), "request", "served"
    ),
    "vLLM, prompt log probabilities beside": _engine(
        {},
        chat({**SERVED, "logprobs": TEXTS}, prompt_token_ids=PROMPT, prompt_logprobs=[None, {"2": {"logprob": -1.0}}]),
        *["served"] * 2,
    ),
    "vLLM, completions that echo texts": _engine(
        {"echo": True},
        text({"prompt_token_ids": PROMPT, **SERVED, "logprobs": {"token_logprobs": [None, -3.0, *LOG_PROBS]}}),
        *["served"] * 2,
    ),
    "vLLM, completions that echo ids": _engine(
        {"echo": True},
        text(
            {
                **SERVED,
                "logprobs": {
                    "tokens": [f"token_id:{token}" for token in PROMPT + GENERATION],
                    "token_logprobs": [None, -3.0, *LOG_PROBS],
                },
            }
        ),
        *("logprob_tokens", "served"),
    ),
    "SGLang, native": _engine(
        {"logprob_start_len": 0},
        {"output_ids": GENERATION, "meta_info": {"input_token_logprobs": INPUT, "output_token_logprobs": TRIPLES}},
        *["native"] * 2,
    ),
    "SGLang, native, prompt by count": _engine(
        {},
        {"meta_info": {"prompt_tokens": 2, "input_token_logprobs": INPUT, "output_token_logprobs": TRIPLES}},
        *["native"] * 2,
    ),
    "SGLang, native, prompt ids": _engine(
        {},
        {"output_ids": GENERATION, "prompt_token_ids": PROMPT, "meta_info": {"output_token_logprobs": TRIPLES}},
        *("served", "native"),
    ),
    "SGLang, chat": _engine(
        {},
        chat({"prompt_token_ids": PROMPT, "response_token_ids": GENERATION, "logprobs": TEXTS}),
        *["served"] * 2,
    ),
    "SGLang, chat with meta info": _engine(
        {},
        chat({"prompt_token_ids": PROMPT, "meta_info": {"output_token_logprobs": TRIPLES}}),
        *("served", "native"),
    ),
    "SGLang, extension": _engine(
        {}, chat({"logprobs": TEXTS}, sglext={"input_ids": PROMPT, "output_ids": [GENERATION]}), *["sglext"] * 2
    ),
    "TensorRT-LLM": _engine({}, text({**SERVED, "logprobs": LISTS}, prompt_token_ids_b64=PACKED), *["served"] * 2),
    "Dynamo, engine data": _engine(
        {},
        chat(
            {},
            nvext={
                "engine_data": {
                    "prompt_token_ids": PROMPT,
                    "completion_token_ids": GENERATION,
                    "completion_logprobs": LOG_PROBS,
                }
            },
        ),
        *["engine_data"] * 2,
    ),
    "Dynamo, frontend": _engine(
        {},
        chat({"logprobs": TEXTS}, nvext={"prompt_token_ids": PROMPT, "completion_token_ids": GENERATION}),
        *["nvext"] * 2,
    ),
    "Dynamo, ids sent": _engine(
        {"nvext": {"token_data": PROMPT}},
        chat({"logprobs": TEXTS}, nvext={"completion_token_ids": GENERATION}),
        *("request", "nvext"),
    ),
    "llama.cpp": _engine(SENT, {"tokens": GENERATION, "completion_probabilities": ENTRIES}, "request", "tokens"),
    "llama.cpp, chat": _engine(
        {"input_ids": PROMPT}, chat({"logprobs": {"content": ENTRIES}}), "request", "logprob_tokens"
    ),
    "llama.cpp, chat, verbose": _engine(
        {"input_ids": PROMPT}, chat({"logprobs": TEXTS}, __verbose={"tokens": GENERATION}), "request", "tokens"
    ),
    "TGI": _engine(
        {},
        {"details": {"prefill": [{"id": 1, "logprob": None}, {"id": 2, "logprob": -2.0}], "tokens": ENTRIES}},
        *["details"] * 2,
    ),
    "LMDeploy, chat": _engine(
        {"input_ids": PROMPT},
        chat({"output_ids": GENERATION, "output_token_logprobs": [[-0.5, 5], [-0.1, 9]]}),
        *("request", "native"),
    ),
    "LMDeploy, native": _engine(
        {"input_ids": PROMPT},
        {"output_ids": GENERATION, "meta_info": {"output_token_logprobs": [[-0.5, 5], [-0.1, 9]]}},
        *("request", "native"),
    ),
    "LMDeploy, Messages": _engine(
        {"input_ids": PROMPT},
        {"content": [], "output_ids": GENERATION, "meta_info": {"output_token_logprobs": [[-0.5, 5], [-0.1, 9]]}},
        *("request", "native"),
    ),
    "Fireworks": _engine({}, chat({**SERVED, "logprobs": BESIDE}, prompt_token_ids=PROMPT), *["served"] * 2),
    "Fireworks, raw output": _engine(
        {},
        chat(
            {
                "raw_output": {
                    "prompt_token_ids": PROMPT,
                    "completion_token_ids": GENERATION,
                    "completion_logprobs": BESIDE,
                }
            }
        ),
        *["raw_output"] * 2,
    ),
    "Together": _engine(
        {"echo": True},
        text({"logprobs": {**LISTS, "token_ids": GENERATION}}, prompt=[{"logprobs": {"token_ids": PROMPT}}]),
        *("echo", "logprob_tokens"),
    ),
    "Tinker": _engine(
        {"prompt": {"chunks": [{"tokens": [1]}, {"tokens": [2]}]}},
        {"sequences": [{"tokens": GENERATION, "logprobs": LOG_PROBS, "stop_reason": "stop"}]},
        *("request", "tokens"),
    ),
    "LiteLLM, of the choice": _engine(
        {},
        chat({"provider_specific_fields": SERVED, "logprobs": TEXTS}, prompt_token_ids=PROMPT),
        *["served"] * 2,
    ),
    "LiteLLM, of the message": _engine(
        {}, chat({"message": {"content": "a", "provider_specific_fields": BUNDLE}}), *["message"] * 2
    ),
    "vLLM, chat stream": _streamed(
        [
            {"prompt_token_ids": PROMPT, "choices": []},
            delta({"token_ids": [5], "logprobs": entry(0)}),
            delta({"token_ids": None}),
            delta({"token_ids": [9], "logprobs": entry(1)}, "stop"),
        ],
        *["served"] * 2,
    ),
    "vLLM, chat stream with prompt at every choice": _streamed(
        [
            delta({"prompt_token_ids": PROMPT, "token_ids": [5], "logprobs": entry(0)}),
            delta({"prompt_token_ids": PROMPT, "token_ids": [9], "logprobs": entry(1)}, "stop"),
        ],
        *["served"] * 2,
    ),
    "vLLM, completions stream": _streamed(
        [
            delta({"text": "a", "prompt_token_ids": PROMPT, "token_ids": [5], "logprobs": {"token_logprobs": [-0.5]}}),
            delta({"text": "b", "token_ids": [9], "logprobs": {"token_logprobs": [-0.1]}}, "stop"),
        ],
        *["served"] * 2,
    ),
    "LiteLLM, stream": _streamed(
        [
            delta({"provider_specific_fields": {"token_ids": [5]}, "logprobs": entry(0)}, prompt_token_ids=PROMPT),
            delta({"provider_specific_fields": {"token_ids": [9]}, "logprobs": entry(1)}, "stop"),
        ],
        *["served"] * 2,
    ),
    "Megatron, stream": _streamed([delta({"delta": BUNDLE}, "stop")], *["message"] * 2),
    "SGLang, native stream that repeats": _streamed(
        [
            {"output_ids": [5], "meta_info": {"completion_tokens": 1, "output_token_logprobs": TRIPLES[:1]}},
            {"output_ids": [5, 9], "meta_info": {"completion_tokens": 2, "output_token_logprobs": TRIPLES}},
        ],
        *("request", "native"),
        request={"input_ids": PROMPT},
    ),
    "SGLang, native stream of pieces": _streamed(
        [
            {"output_ids": [5], "meta_info": {"completion_tokens": 1, "output_token_logprobs": TRIPLES[:1]}},
            {"output_ids": [9], "meta_info": {"completion_tokens": 2, "output_token_logprobs": TRIPLES[1:]}},
        ],
        *("request", "native"),
        request={"input_ids": PROMPT},
    ),
    "SGLang, stream with extension": _streamed(
        [
            delta({"logprobs": {"content": TEXTS["content"]}}, "stop"),
            {"choices": [], "sglext": {"input_ids": PROMPT}},
            {"choices": [], "sglext": {"output_ids": [GENERATION]}},
        ],
        *["sglext"] * 2,
    ),
    "Dynamo, stream": _streamed(
        [
            delta({"delta": {"content": "a"}}),
            delta({}, "stop", nvext={"completion_token_ids": GENERATION, "prompt_token_ids": PROMPT}),
            {"choices": [], "nvext": {"engine_data": {"completion_logprobs": LOG_PROBS}}},
        ],
        *["nvext"] * 2,
    ),
    "llama.cpp, stream": Engine(
        streamed_as(
            [
                {"content": "a", "stop": False, "tokens": [5], "completion_probabilities": ENTRIES[:1]},
                {"content": "b", "stop": False, "tokens": [9], "completion_probabilities": ENTRIES[1:]},
                {"content": "", "stop": True, "tokens": [], "stop_type": "eos"},
            ],
            SENT,
            done=False,
        ),
        *("request", "tokens"),
    ),
    "TGI, stream": Engine(
        streamed_as(
            [
                {"index": 1, "token": ENTRIES[0], "generated_text": None, "details": None},
                {"index": 2, "token": ENTRIES[1], "generated_text": "ab", "details": {"finish_reason": "eos_token"}},
            ],
            {"input_ids": PROMPT},
            done=False,
        ),
        *("request", "details"),
    ),
    "LMDeploy, Messages stream": Engine(
        streamed_as(
            [
                {"type": "message_start", "message": {"id": "r1", "content": []}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn", "output_ids": GENERATION}},
                {"type": "message_delta", "delta": {}, "meta_info": {"output_token_logprobs": TRIPLES}},
                {"type": "message_stop"},
            ],
            {"input_ids": PROMPT},
            done=False,
        ),
        *("request", "native"),
    ),
    "Gym, Responses stream": Engine(
        streamed_as([{"type": "response.completed", "response": {"output": [{"type": "message", **BUNDLE}]}}]),
        *["message"] * 2,
    ),
}
