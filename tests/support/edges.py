"""Broken edges of made-up vocabularies, from the pieces that stand on each side.

    words = Vocabulary("<|end|>")
    edge(words, ["Say it."], ["Hel", "lo", "<|end|>"], ["Say it.", "Hello", "<|end|>", "On."])

What is not said is not known: no raw calls, no finish reason, no stops of other generations.
"""

from array import array
from collections.abc import Sequence
from typing import Any

from ng_capture.chains.divergence import diverge
from ng_capture.outputs.explain.edge import Edge
from ng_capture.records.ids import IdSequence, id_list
from tests.support.vocabulary import Vocabulary

Pieces = Sequence[str | bytes]


def edge(
    words: Vocabulary, prompt: Pieces, generation: Pieces, new: Pieces, *, text: bool = True, **known: Any
) -> Edge:
    """The edge between a call and the prompt that leaves it; `text`: with the tokenizer. Fails where it holds."""
    asked, answered, then = (words.ids(*pieces) for pieces in (prompt, generation, new))
    return of_ids(asked, answered, then, tokenizer=words.tokenizer if text else None, **known)


def of_ids(prompt: Sequence[int], generation: Sequence[int], new: Sequence[int], **known: Any) -> Edge:
    """The same from ids."""
    held = [*prompt, *generation]
    sequences = (IdSequence.of(id_list(list(ids))) for ids in (held, new))
    divergence = diverge(next(sequences), len(prompt), next(sequences))
    assert divergence is not None, "the prompt begins with all that was held"
    return Edge(divergence, array("Q", held), len(prompt), array("Q", new), **known)
