"""A made-up vocabulary: pieces get their ids when they are first named, and ids their bytes back.

words = Vocabulary("<|end|>", "<think>")       # control tokens
ids = words.ids("Hel", "lo", "<|end|>")        # [2, 3, 0]
words.ids(b"\\xe6", ...)                        # pieces of bytes
words.tokenizer.text(ids)                      # "Hello<|end|>"
"""

from array import array

from ng_capture.tokenizer import Tokenizer


class Vocabulary:
    """Pieces by the order in which they were named; `control` are special, `plain_added` added but not special."""

    def __init__(self, *control: str, plain_added: tuple[str, ...] = (), prefix_space: bool = False) -> None:
        self._pieces: list[bytes] = []
        added = [*control, *plain_added]
        special = (frozenset(range(len(each))) for each in (control, added))
        self.tokenizer = Tokenizer(self._piece, *special, prefix_space=prefix_space)
        self.ids(*added)

    def ids(self, *pieces: str | bytes) -> list[int]:
        return [self._id(piece.encode() if isinstance(piece, str) else piece) for piece in pieces]

    def array(self, *pieces: str | bytes) -> "array[int]":
        return array("Q", self.ids(*pieces))

    def _id(self, piece: bytes) -> int:
        if piece not in self._pieces:
            self._pieces.append(piece)
        return self._pieces.index(piece)

    def _piece(self, token_id: int) -> bytes | None:
        return self._pieces[token_id] if token_id < len(self._pieces) else None
