"""Ids back to bytes, with tokenizers that are made here; nothing is fetched."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.errors import UsageError
from ng_capture.tokenizer import Tokenizer, load_tokenizer
from tests.support.command import run
from tests.support.fixtures import ROOT
from tests.support.tiny_tokenizers import (
    STOP,
    THINK,
    byte_level,
    metaspace,
    sentencepiece_model,
    write_cached,
    write_json,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["the quern stood", "  two  spaces\n\tand a tab", "石臼は粉を", "e\u0301 \u00e9 \U0001f600", f"a{STOP}b{THINK}c"]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of file, and a folder for each."""
    made = tmp_path_factory.mktemp("tokenizers")
    write_json(made / "json" / "tokenizer.json")
    write_json(made / "gz" / "tokenizer.json.gz")
    write_json(made / "metaspace" / "tokenizer.json", metaspace())
    (made / "spm").mkdir()
    (made / "spm" / "tokenizer.model").write_bytes(sentencepiece_model())
    (made / "empty").mkdir()
    return made


@pytest.fixture(scope="module")
def bpe(folder: Path) -> Tokenizer:
    return load_tokenizer(str(folder / "json" / "tokenizer.json"))


@pytest.fixture(scope="module")
def spm(folder: Path) -> Tokenizer:
    return load_tokenizer(str(folder / "spm" / "tokenizer.model"))


def id_of(piece: str) -> int:
    found = byte_level().token_to_id(piece)
    assert found is not None
    return found


@given(text=texts)
def test_the_bytes_of_a_byte_level_vocabulary_are_what_the_library_decodes(bpe: Tokenizer, text: str) -> None:
    ids = byte_level().encode(text).ids
    assert bpe.text(ids) == byte_level().decode(ids, skip_special_tokens=False) == text
    assert bpe.bytes(ids) == text.encode()


@given(text=texts)
def test_the_bytes_of_a_sentencepiece_model_are_what_the_library_decodes(spm: Tokenizer, text: str) -> None:
    """The library leaves out the space that it put before the text; here it stays, since the id stands for it."""
    model = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model())
    ids = model.encode(text.replace("\0", "").replace("\u2581", ""))
    decoded = model.decode(ids)
    assert spm.text(ids) == (f" {decoded}" if ids else "")


def test_the_pieces_of_a_sentencepiece_vocabulary_in_json_are_the_same(folder: Path) -> None:
    loaded = load_tokenizer(str(folder / "metaspace"))
    assert loaded.text([1, 3, 2]) == " querns mill" == metaspace().decode([1, 3, 2], skip_special_tokens=False)
    assert loaded.text([4, 5, 6]) == "石" and loaded.text([4]) == "\ufffd"


@pytest.mark.parametrize("place", ["json", "json/tokenizer.json", "gz", "gz/tokenizer.json.gz"])
def test_a_file_and_its_folder_are_one_tokenizer(folder: Path, bpe: Tokenizer, place: str) -> None:
    loaded = load_tokenizer(str(folder / place))
    ids = range(byte_level().get_vocab_size())
    assert [loaded.piece(each) for each in ids] == [bpe.piece(each) for each in ids]


def test_a_sentencepiece_model_is_found_in_its_folder(folder: Path, spm: Tokenizer) -> None:
    loaded = load_tokenizer(str(folder / "spm"))
    assert [loaded.piece(each) for each in range(300)] == [spm.piece(each) for each in range(300)]


def test_a_tokenizer_json_comes_before_a_model_beside_it(tmp_path: Path, folder: Path) -> None:
    write_json(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_model())
    assert STOP in load_tokenizer(str(tmp_path)).text([0])


def test_control_tokens_are_told_from_those_that_are_only_added(bpe: Tokenizer, spm: Tokenizer) -> None:
    stop, think = id_of(STOP), id_of(THINK)
    assert (bpe.control, bpe.added) == ({stop}, {stop, think})
    assert bpe.text([stop, think]) == f"{STOP}{THINK}"
    assert spm.control == spm.added == {0, 1, 2}


@pytest.mark.parametrize(
    ("normalizer", "pre_tokenizer", "puts_a_space"),
    [
        (None, {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, True),
        (None, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}, False),
        (None, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}, True),
        (None, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": False}, False),
        ({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}]}, None, True),
        ({"type": "NFC"}, None, False),
    ],
)
def test_a_tokenizer_that_puts_a_space_before_a_text_is_known(
    tmp_path: Path, normalizer: object, pre_tokenizer: object, puts_a_space: bool
) -> None:
    parts = json.loads(byte_level().to_str()) | {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer}
    (tmp_path / "tokenizer.json").write_text(json.dumps(parts))
    assert load_tokenizer(str(tmp_path)).prefix_space is puts_a_space


def test_a_sentencepiece_model_puts_a_space_before_a_text(spm: Tokenizer) -> None:
    assert spm.prefix_space


def test_an_id_that_is_none_is_shown_as_its_number(bpe: Tokenizer, spm: Tokenizer) -> None:
    for loaded in (bpe, spm):
        assert loaded.text([2**31 - 1]) == "<2147483647?>"


def test_half_a_character_is_bytes_and_no_text(bpe: Tokenizer) -> None:
    byte = id_of("\u00e9")  # the letter of this byte
    assert bpe.piece(byte) == b"\xe9" and bpe.text([byte]) == "\ufffd"


@pytest.mark.parametrize("text", ["<0xZZ>", "<0x+1>", "<0x 1>", "<0x1_>"])
def test_a_piece_that_only_looks_like_a_byte_is_a_text(tmp_path: Path, text: str) -> None:
    made = metaspace().to_str().replace("<0xE7>", text)
    (tmp_path / "tokenizer.json").write_text(made)
    assert load_tokenizer(str(tmp_path)).text([4]) == text


def test_letters_that_stand_for_no_byte_are_themselves(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(byte_level().to_str().replace('"!":', '"漢!":'))
    loaded = load_tokenizer(str(tmp_path))
    assert loaded.text([id_of("!")]) == "漢!"


BROKEN = {
    "empty.json": b"",
    "list.json": b"[]",
    "deep.json": b"[" * 100_000,
    "other.json": b'{"model": {"type": "BPE"}}',
    "text.json": b"\xff\xfe",
    "cut.json.gz": b"\x1f\x8b\x08\x00",
    "plain.json.gz": b"{}",
    "tokenizer.model": b"no model",
    "empty.model": b"",
    "model.bin": b"\x00" * 100,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_tokenizer_is_wrong_use(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(BROKEN[name])
    with pytest.raises(UsageError) as raised:
        load_tokenizer(str(tmp_path / name))
    assert raised.value.message.startswith(str(tmp_path / name)) and raised.value.hint


def test_a_folder_without_a_tokenizer_is_wrong_use(folder: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load_tokenizer(str(folder / "empty"))
    assert str(folder / "empty") in raised.value.message and raised.value.hint


def test_a_tokenizer_without_a_fast_form_is_wrong_use(tmp_path: Path) -> None:
    """Python-only tokenizers have no vocabulary of bytes."""
    (tmp_path / "vocab.txt").write_text("[UNK]\n[SEP]\n[PAD]\n[CLS]\n[MASK]\nquern\n")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertJapaneseTokenizer"}')
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(UsageError) as raised:
        load_tokenizer(str(tmp_path))
    assert raised.value.hint


def test_a_name_that_is_not_in_the_cache_is_wrong_use_and_nothing_is_fetched(tmp_path: Path) -> None:
    where = ("show", ROOT / "capture", "linear", "--tokens", "--tokenizer")
    done = run(*where, "quern/mill-1b", HF_HOME=str(tmp_path), HF_HUB_OFFLINE="1")
    assert (done.code, done.out) == (2, "")
    assert "quern/mill-1b: no tokenizer" in done.err and "hint: " in done.err and "Traceback" not in done.err
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 1000] == []


def test_a_name_in_the_cache_is_read_from_there(tmp_path: Path) -> None:
    home = write_cached(tmp_path, "quern/mill-1b")
    where = ("show", ROOT / "capture", "linear", "--tokens", "--tokenizer")
    by_name = run(*where, "quern/mill-1b", HF_HOME=str(home), HF_HUB_OFFLINE="1")
    by_file = run(*where, next(home.rglob("tokenizer.json")))
    assert (by_name.code, by_file.code) == (0, 0)
    assert by_name.out == by_file.out != ""


def test_no_connection_is_opened_for_a_name(tmp_path: Path) -> None:
    """Not even where the environment does not forbid it: every attempt would be an error here."""
    program = (
        "import socket, sys\n"
        "def refuse(*args, **kwargs): print('connects', file=sys.stderr); raise OSError('no network')\n"
        "socket.socket.connect = refuse\nsocket.getaddrinfo = refuse\n"
        "from ng_capture.errors import UsageError\nfrom ng_capture.tokenizer import load_tokenizer\n"
        "try: load_tokenizer('quern/mill-1b')\nexcept UsageError: print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"HF_HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout == "refused\n" and "connects" not in done.stderr
