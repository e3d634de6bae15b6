"""What lies in fixtures/: made from descriptions, so that it can be made again.

python -m tests.support.fixtures        # writes fixtures/capture, fixtures/rollouts.jsonl, fixtures/expected.json
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.forge import Call, Files, Forge, Row, canonical, in_lines

ROOT = Path(__file__).parents[2] / "fixtures"


@dataclass
class Case:
    """One rollout: its capture, its finished row, and what ng-capture must say of it."""

    forge: Forge
    row: Row
    expected: Row
    files: Files


def cases() -> list[Case]:
    """All fixtures, in the order of their rows."""
    return [
        _linear("linear", delta=False),
        _linear("linear-delta", delta=True),
        _retried_turn(),
        _retried_answer(),
        _sub_agent(),
        _compacted(),
        _empty_generation(),
        _broken_prefix(),
        _lost_call(),
        _torn_line(),
    ]


def _case(forge: Forge, scored: Call | None, expected: Row, **how: Any) -> Case:
    return Case(forge, forge.row(scored), expected, forge.files(**how))


def _trainable(*calls: str) -> Row:
    return {"verdict": "trainable", "reasons": [], "calls": list(calls)}


def _masked(*reasons: str) -> Row:
    return {"verdict": "masked", "reasons": list(reasons), "calls": None}


def _linear(name: str, *, delta: bool) -> Case:
    forge = Forge(name, delta=delta)
    first = forge.root([1, 2, 3], [11, 12, 13], id="c1")
    second = first.then([4, 5], [14, 15], id="c2")
    third = second.then([6, 7], [16, 17, 18], id="c3")
    return _case(forge, third, _trainable("c1", "c2", "c3"), raw=True)


def _retried_turn() -> Case:
    forge = Forge("retried-turn")
    first = forge.root([1, 2], [11], id="c1")
    first.then([3], [12], id="c2-lost")
    kept = first.then([3], [13, 14], id="c2")
    last = kept.then([4], [15], id="c3")
    return _case(forge, last, _trainable("c1", "c2", "c3"))


def _retried_answer() -> Case:
    forge = Forge("retried-answer")
    first = forge.root([1, 2], [11], id="c1")
    first.then([3], [12], id="c2")
    first.then([3], [13], id="c3")
    return _case(forge, None, _masked("ambiguous_retry"))


def _sub_agent() -> Case:
    forge = Forge("sub-agent")
    first = forge.root([1, 2], [11], id="c1")
    helper = forge.root([8, 9], [21], id="s1")
    helper.then([10], [22, 23], id="s2")
    last = first.then([3], [12, 13], id="c2")
    return _case(forge, last, _trainable("c1", "c2"))


def _compacted() -> Case:
    forge = Forge("compacted")
    forge.root([1, 2], [11], id="c1").then([3], [12], id="c2")
    last = forge.root([1, 30], [13], id="c3").then([4], [14], id="c4")
    return _case(forge, last, _trainable("c3", "c4"))


def _empty_generation() -> Case:
    forge = Forge("empty-generation")
    first = forge.root([1, 2], [11], id="c1")
    last = first.then([3], [], id="c2").then([], [12], id="c3")
    return _case(forge, last, _trainable("c1", "c3"))


def _broken_prefix() -> Case:
    forge = Forge("broken-prefix")
    first = forge.root([1, 2], [20, 21, 11], id="c1")
    last = first.broken([1, 2, 11, 3], [12], id="c2")
    return _case(forge, last, _masked("prefix_mismatch", "terminal_chain_broken"))


def _lost_call() -> Case:
    forge = Forge("lost-call")
    first = forge.root([1, 2], [11], id="c1")
    case = _case(forge, first, _masked("capture_incomplete"))
    case.files["lost-call.tokens.intents"] += b"c2\n"
    return case


def _torn_line() -> Case:
    forge = Forge("torn-line")
    first = forge.root([1, 2], [11], id="c1")
    first.then([3], [12], id="c2")
    case = _case(forge, first, _masked("torn_tail"), state=False, intents=False)
    case.files["torn-line.tokens.jsonl"] = case.files["torn-line.tokens.jsonl"][:-40]
    return case


# what the ids of the fixtures say, for --tokenizer
_WORDS = {
    1: "<|user|>",
    2: "What is a quern?",
    3: "<|user|>And a saddle quern?",
    4: "<|user|>Who used it?",
    5: "<|system|>",
    6: "<|user|>Where?",
    7: "<|end|>",
    8: "<|helper|>",
    9: "Look up: quern",
    10: "<|tool|>a hand mill",
    11: "A stone hand mill.",
    12: "A flat one.",
    13: "A flat stone",
    14: " for grain.",
    15: "Farmers.",
    16: "In Europe",
    17: " and",
    18: " Asia.",
    20: "<think>",
    21: "I know this one.</think>",
    22: "Found",
    23: " it.",
    30: "Summary: a quern is a hand mill.",
}


def _tokenizer() -> bytes:
    """A vocabulary of whole phrases in the form of the tokenizers library."""
    vocab = {_WORDS.get(token_id, f"<unused {token_id}>"): token_id for token_id in range(31)}
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "<unused 0>"}
    parts = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    whole = {"version": "1.0", **dict.fromkeys(parts), "added_tokens": [], "model": model}
    return json.dumps(whole, indent=1).encode() + b"\n"


def contents() -> Files:
    """Every made file by its path under fixtures/."""
    made: Files = {}
    for case in cases():
        made |= {f"capture/{name}": data for name, data in case.files.items()}
    made["rollouts.jsonl"] = in_lines(canonical(case.row) for case in cases())
    expected = {case.forge.rollout_id: case.expected for case in cases()}
    made["tokenizer.json"] = _tokenizer()
    made["expected.json"] = (json.dumps(expected, indent=1) + "\n").encode()
    return made


def main() -> None:
    """Write them."""
    shutil.rmtree(ROOT / "capture", ignore_errors=True)
    for name, data in contents().items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main()
