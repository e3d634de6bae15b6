"""Tokenizers small enough to be trained in a test: a byte-level BPE, and a SentencePiece model with byte pieces."""

import gzip
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

STOP, THINK = "<|stop|>", "<think>"
_TEXT = ["The quern stood in the corner of the mill, and the miller stood beside the quern.", "石臼は粉を挽く。"] * 8


@cache
def byte_level() -> tokenizers.Tokenizer:
    """A byte-level BPE with one control token and one that is added but not special."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        _TEXT,
        trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, special_tokens=[STOP], show_progress=False),
    )
    made.add_tokens([tokenizers.AddedToken(THINK, special=False)])
    return made


@cache
def sentencepiece_model() -> bytes:
    """A SentencePiece model: unknown, beginning and end are 0, 1, 2; a piece for every byte."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_TEXT),
        model_writer=made,
        model_type="bpe",
        vocab_size=360,
        hard_vocab_limit=False,
        byte_fallback=True,
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    return made.getvalue()


def metaspace() -> tokenizers.Tokenizer:
    """A SentencePiece vocabulary in the form of a tokenizer.json: a word each, a low line for the space, bytes."""
    vocab = {"<unk>": 0, "\u2581quern": 1, "\u2581mill": 2, "s": 3, "<0xE7>": 4, "<0x9F>": 5, "<0xB3>": 6}
    made = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<unk>", byte_fallback=True))
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return made


def write_json(path: Path, tokenizer: tokenizers.Tokenizer | None = None) -> Path:
    """The tokenizer as a tokenizer.json, gzipped where the name says so."""
    data = (tokenizer or byte_level()).to_str().encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def write_cached(home: Path, name: str, **config: Any) -> Path:
    """The byte-level tokenizer as `HF_HOME` holds it after a download, with these members of its configuration."""
    folder = home / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = folder / "snapshots" / ("0" * 40)
    write_json(snapshot / "tokenizer.json")
    told = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
    (snapshot / "tokenizer_config.json").write_text(json.dumps(told))
    (snapshot / "config.json").write_text("{}")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("0" * 40)
    return home
