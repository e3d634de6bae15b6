"""Text that acts on a terminal where it is printed raw, and what of it is left in an output."""

import json
import re
from pathlib import Path
from typing import Any

from tests.support.fixtures import ROOT
from tests.support.forge import Forge
from tests.support.raw_calls import calls, chat_call, result, says, system, user

HOSTILE = {
    "escapes": "\x1b[2J\x1b]0;title\x07\x1b[1;31m",
    "line breaks": "one\ntwo\r\nthree\rfour\x0b\x0c",
    "separators": "\u2028\u2029\x85\x1c",
    "C1 controls": "\x9b31m\x90\x9c\x84",
    "other controls": "\x00\x08\x7f",
    "turned around": "\u202eevil\u202c\u2066x\u2069\u200f\u061c",
    "a mark": "\ufeffx",
    "markup": "[bold red]x[/bold red] [link=http://x]y[/link] \\[",
    "half a pair": "\ud800",
    "wide": "\u77f3\u81fc\U0001f600 e\u0301",
}
ALL_HOSTILE = "".join(HOSTILE.values())
_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def acting(text: str) -> set[str]:
    """The characters of an output on which a terminal would act; tabs and line breaks are the output's own."""
    return set(_ACTING.findall(text))


def hostile(text: str) -> tuple[Forge, list[dict[str, Any]]]:
    """A rollout whose every text is this; its second call is broken."""
    plain = text.replace("\ud800", "")
    forge = Forge("0-0")
    first = forge.root([1, 2], [3], id=f"a{plain}", model=plain, response_id=plain, weight_version=plain)
    first.broken([1, 9], [4], id=f"b{plain}", model=plain)
    calling = calls((text, text, json.dumps({"a": text}, ensure_ascii=False)), text=text, reasoning_content=text)
    asked = [system(text), user(text)]
    rows = [
        chat_call(f"a{plain}", asked, calling, finish=text),
        chat_call(f"b{plain}", [*asked, calling, result(text, text)], says(text), finish=text),
    ]
    return forge, rows


def write_hostile_tokenizer(path: Path) -> None:
    """The tokenizer of the fixtures with hostile text for every piece."""
    words = json.loads((ROOT / "tokenizer.json").read_bytes())
    vocab = {f"{ALL_HOSTILE.replace(chr(0xD800), '')}{number}": number for number in range(12)}
    words["model"] |= {"vocab": vocab, "unk_token": next(iter(vocab))}
    path.write_text(json.dumps(words))
