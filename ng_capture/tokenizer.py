"""Decode token ids with the policy's tokenizer, from local files only: the one module that loads such libraries."""

import gzip
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ng_capture.errors import UsageError

_SENTENCEPIECE_SPACE = "\u2581"
_BYTE_PIECE = re.compile("<0x([0-9A-Fa-f]{2})>")


class Tokenizer:
    """The pieces of a vocabulary as bytes; `control` ids are special, `added` ids are no pieces of the model's own.

    `prefix_space`: it puts a space before a text that it encodes. `unknown`: ids met so far that it does not have.
    """

    def __init__(
        self,
        piece: Callable[[int], bytes | None],
        control: frozenset[int],
        added: frozenset[int],
        *,
        prefix_space: bool = False,
    ) -> None:
        self._piece = piece
        self._pieces: dict[int, bytes] = {}
        self.unknown: set[int] = set()
        self.control = control
        self.added = added
        self.prefix_space = prefix_space

    def piece(self, token_id: int) -> bytes:
        """The bytes that one id stands for; an id outside the vocabulary is shown as its number."""
        known = self._pieces.get(token_id)
        if known is None:
            found = self._piece(token_id)
            if found is None:
                self.unknown.add(token_id)
            known = self._pieces[token_id] = f"<{token_id}?>".encode() if found is None else found
        return known

    def bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join(map(self.piece, ids))

    def text(self, ids: Iterable[int]) -> str:
        """The text of some ids, control tokens as they are spelled; bytes that are no UTF-8 become U+FFFD."""
        return self.bytes(ids).decode("utf-8", "replace")


def load_tokenizer(place: str) -> Tokenizer:
    """The tokenizer of a file, a folder, or a hub name in the local cache; raises UsageError where there is none.

    Files: `tokenizer.json` (also gzipped), a SentencePiece model. Nothing is fetched.
    """
    path = Path(place)
    try:
        if path.is_file():
            if path.name.endswith((".json", ".json.gz")):
                return _of_json(path)
            return _of_sentencepiece(path)
        if path.is_dir() and (path / "tokenizer.json").is_file():
            return _of_json(path / "tokenizer.json")
        if path.is_dir():
            models = sorted(path.glob("tokenizer.model*")) or sorted(path.glob("*.json.gz"))
            if models:
                return load_tokenizer(str(models[0]))
        return _of_transformers(place)
    except UsageError:
        raise
    except Exception as error:
        # the libraries raise whatever they like for a file that is none of theirs
        raise UsageError(f"{place}: no tokenizer can be read there: {error}", hint="--tokenizer FOLDER") from error


def cached_chat_template(name: str) -> str | None:
    """The chat template of a hub name, None where the local cache has none."""
    try:
        template = _transformers().AutoTokenizer.from_pretrained(name, local_files_only=True).chat_template
    except Exception:
        # the library raises whatever it likes for a name that it does not have
        return None
    return template if isinstance(template, str) else None


def _transformers() -> Any:
    # `local_files_only` keeps the library from fetching a model, not from asking its hub for other things
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    return transformers


def _of_json(path: Path) -> Tokenizer:
    import tokenizers

    data = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
    return _of_fast(tokenizers.Tokenizer.from_buffer(data), json.loads(data))


def _of_fast(fast: Any, parts: Mapping[str, Any]) -> Tokenizer:
    added: Mapping[int, Any] = fast.get_added_tokens_decoder()
    byte_level = any(part.get("type") == "ByteLevel" for part in _steps(parts, "decoder"))
    spelled = _bytes_of_letters() if byte_level else {}

    def piece(token_id: int) -> bytes | None:
        if token_id in added:
            return str(added[token_id].content).encode()
        text = fast.id_to_token(token_id)
        if text is None:
            return None
        if byte_level:
            return (
                bytes(spelled[letter] for letter in text)
                if all(letter in spelled for letter in text)
                else text.encode()
            )
        return _sentencepiece_bytes(text)

    control = frozenset(token_id for token_id, token in added.items() if token.special)
    return Tokenizer(piece, control, frozenset(added), prefix_space=_puts_a_space(parts))


def _of_sentencepiece(path: Path) -> Tokenizer:
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    size = model.get_piece_size()
    control = frozenset(index for index in range(size) if model.is_control(index) or model.is_unknown(index))

    def piece(token_id: int) -> bytes | None:
        return _sentencepiece_bytes(model.id_to_piece(token_id)) if 0 <= token_id < size else None

    return Tokenizer(piece, control, control, prefix_space=True)


def _of_transformers(name: str) -> Tokenizer:
    loaded = _transformers().AutoTokenizer.from_pretrained(name, local_files_only=True)
    fast = getattr(loaded, "backend_tokenizer", None)
    if fast is None:
        raise UsageError(f"{name}: a tokenizer without a tokenizer.json", hint="--tokenizer PATH of its model file")
    return _of_fast(fast, json.loads(fast.to_str()))


def _sentencepiece_bytes(piece: str) -> bytes:
    byte = _BYTE_PIECE.fullmatch(piece)
    if byte is not None:
        return bytes.fromhex(byte[1])
    return piece.replace(_SENTENCEPIECE_SPACE, " ").encode()


def _steps(parts: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """A part of a `tokenizer.json` and the parts that it is a sequence of."""
    part = parts.get(key)
    if isinstance(part, dict):
        yield part
        for name in ("normalizers", "pretokenizers", "decoders"):
            yield from part.get(name, ())


def _puts_a_space(parts: Mapping[str, Any]) -> bool:
    prepends = any(step.get("prepend") == _SENTENCEPIECE_SPACE for step in _steps(parts, "normalizer"))
    # `add_prefix_space` is what `prepend_scheme` was called
    return prepends or any(
        step.get("add_prefix_space", False) or step.get("prepend_scheme", "never") != "never"
        for step in _steps(parts, "pre_tokenizer")
    )


def _bytes_of_letters() -> dict[str, int]:
    """The letter that byte-level vocabularies write for every byte: printable ones are themselves."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}
