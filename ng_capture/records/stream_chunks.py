"""Streams put together with all that they carry: choices kept apart, ids and log probabilities a piece at a time."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ng_capture.records.json_text import object_in, objects_in
from ng_capture.records.usage import count

Chunk = Mapping[str, object]
Grown = dict[str, Any]

_TOLD = (
    *("id", "model", "usage", "prompt_token_ids", "prompt_token_ids_b64", "prompt_logprobs", "nvext", "sglext"),
    *("__verbose", "provider_specific_fields"),
)
_TEXTS = frozenset({"content", "reasoning_content", "reasoning", "refusal", "text", "data", "transcript"})
_ONCE = frozenset({"prompt_token_ids", "prompt_token_ids_b64", "prompt_logprobs", "input_token_logprobs", "role"})
_OBJECTS = frozenset({"logprobs", "provider_specific_fields", "nvext", "sglext", "meta_info", "raw_output", "audio"})
_PIECES = frozenset(
    (
        *("token_ids", "response_token_ids", "output_ids", "generation_token_ids", "generation_log_probs", "tokens"),
        *("output_token_logprobs", "completion_probabilities", "content", "token_logprobs", "top_logprobs"),
        *("reasoning_details", "thinking_blocks", "annotations"),
    )
)

_CALLED = ("tool_calls", "function_call")


def completion(chunks: Iterable[Chunk]) -> Chunk:
    """A chat or text completion: each choice by its index, texts joined, tool calls by theirs."""
    told: Grown = {}
    choices: dict[int, Grown] = {}
    messages: dict[int, Grown] = {}
    calls: dict[int, dict[int, Grown]] = {}
    for chunk in chunks:
        _grow(told, {key: chunk[key] for key in _TOLD if chunk.get(key) is not None})
        for choice in objects_in(chunk.get("choices")):
            index = _index(choice)
            _grow(choices.setdefault(index, {}), {key: choice[key] for key in choice if key not in ("delta", "index")})
            delta = object_in(choice.get("delta"))
            _grow(messages.setdefault(index, {}), {key: delta[key] for key in delta if key not in _CALLED})
            if isinstance(delta.get("function_call"), dict):
                _add_called(messages[index].setdefault("function_call", {}), object_in(delta["function_call"]))
            for piece in objects_in(delta.get("tool_calls")):
                _add_call(calls.setdefault(index, {}), piece)
    if not choices:
        return told
    whole = []
    for index in sorted(choices):
        message = {**messages[index], "role": "assistant"}
        if index in calls:
            message["tool_calls"] = [calls[index][place] for place in sorted(calls[index])]
        whole.append({"finish_reason": None, **choices[index], "index": index, "message": message})
    return {**told, "choices": whole}


def native(chunks: Iterable[Chunk]) -> Chunk:
    """SGLang's own dialect and LMDeploy's: what is new, or all so far again; several answers become choices."""
    by_index: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        by_index.setdefault(_index(chunk), []).append(chunk)
    answers = [_generated(index, own) for index, own in sorted(by_index.items())]
    return answers[0] if len(answers) == 1 else {"choices": answers}


def continued(chunks: Iterable[Chunk]) -> Chunk:
    """llama.cpp's own dialect: all is new."""
    whole: Grown = {}
    for chunk in chunks:
        _grow(whole, chunk)
    return whole


def detailed(chunks: Iterable[Chunk]) -> Chunk:
    """TGI: a token an event, the details in the last."""
    whole: Grown = {}
    tokens = []
    for chunk in chunks:
        whole |= {key: value for key, value in chunk.items() if value is not None and key not in ("token", "index")}
        if chunk.get("token") is not None:
            tokens.append(chunk["token"])
    return {**whole, "details": {**object_in(whole.get("details")), "tokens": tokens}}


def _generated(index: int, chunks: Sequence[Chunk]) -> Chunk:
    whole: Grown = {}
    for chunk in chunks:
        _grow(whole, {key: value for key, value in chunk.items() if key not in ("text", "output_ids")})
    meta = whole.get("meta_info")
    tokens = count(object_in(meta).get("completion_tokens"))
    lists = [value for chunk in chunks if isinstance(value := chunk.get("output_ids"), list)]
    if lists:
        whole["output_ids"] = _joined(lists, tokens)
    metas = [object_in(chunk.get("meta_info")).get("output_token_logprobs") for chunk in chunks]
    entries = [value for value in metas if isinstance(value, list)]
    if entries and isinstance(meta, dict):
        meta["output_token_logprobs"] = _joined(entries, tokens)
    texts = [value for chunk in chunks if isinstance(value := chunk.get("text"), str)]
    if texts:
        repeated = all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))
        whole["text"] = texts[-1] if repeated else "".join(texts)
    return {**whole, "index": index}


def _joined(pieces: Sequence[list[object]], tokens: int | None) -> list[object]:
    """Pieces one behind the other, or the last if it repeats those before; the server's count decides."""
    joined = list(itertools.chain.from_iterable(pieces))
    if tokens == len(joined):
        return joined
    repeated = all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(pieces))
    return pieces[-1] if repeated else joined


def _grow(whole: Grown, piece: Chunk, objects: frozenset[str] = _OBJECTS) -> None:
    """Add what a chunk says: texts and pieces are joined, objects grow, of all else the last counts, or the first."""
    for key, value in piece.items():
        if value is None or (key in _ONCE and whole.get(key)):
            whole.setdefault(key, value)
        elif key in objects and isinstance(value, dict):
            if not isinstance(whole.get(key), dict):
                whole[key] = {}
            _grow(whole[key], value, frozenset())
        elif key in _TEXTS and isinstance(value, str):
            add_text(whole, key, value)
        elif key in _PIECES:
            # a piece that is no list is no id either: it stays, to be found
            before = whole.get(key)
            pieces = whole[key] = before if isinstance(before, list) else []
            pieces += value if isinstance(value, list) else [value]
        else:
            whole[key] = value


def add_text(whole: Grown, key: str, text: str) -> None:
    """Let the text of a field grow; in its place, since an answer may come in a hundred thousand pieces."""
    grown = whole.get(key)
    if isinstance(grown, str):
        # no one else may hold it, or it is copied
        whole[key] = None
        grown += text
        whole[key] = grown
    else:
        whole[key] = text


def _add_call(calls: dict[int, Grown], piece: Chunk) -> None:
    index = piece.get("index")
    kind = "custom" if isinstance(piece.get("custom"), dict) else "function"
    call = calls.setdefault(index if isinstance(index, int) else len(calls), {})
    for key in ("id", "type"):
        if piece.get(key):
            call[key] = piece[key]
    _add_called(call.setdefault(kind, {}), object_in(piece.get(kind)))


def _add_called(called: Grown, piece: Chunk) -> None:
    """Add a piece of what is called: the name is told once, arguments grow."""
    name, growing = piece.get("name"), "input" if "input" in piece else "arguments"
    called["name"] = name if isinstance(name, str) and name else called.get("name", "")
    text = piece.get(growing)
    add_text(called, growing, text if isinstance(text, str) else "")


def _index(piece: Chunk) -> int:
    index = piece.get("index")
    return index if type(index) is int else 0
