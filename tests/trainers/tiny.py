"""A model and a tokenizer built in code: two layers, hidden size 32, a word for each of 64 ids."""

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.trainers.captured import END

_SIZE = 64


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    words = {"<pad>": 0, "<end>": END, "<unknown>": 2} | {f"w{number}": number for number in range(3, _SIZE)}
    model = Tokenizer(WordLevel(words, unk_token="<unknown>"))
    return PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<pad>", eos_token="<end>", unk_token="<unknown>", padding_side="left"
    )


def tiny_model() -> LlamaForCausalLM:
    """The same weights each time."""
    torch.manual_seed(7)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=_SIZE,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=2048,
            pad_token_id=0,
            eos_token_id=END,
            bos_token_id=None,
        )
    )


def token_log_probs(model: LlamaForCausalLM, tokens: list[int]) -> torch.Tensor:
    """The model's log probability of every token but the first, which nothing predicts."""
    logits = model(input_ids=torch.tensor([tokens])).logits[0, :-1]
    return torch.log_softmax(logits, dim=-1)[torch.arange(len(tokens) - 1), torch.tensor(tokens[1:])]
