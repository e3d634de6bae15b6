"""One broken edge with all that is known about it."""

from array import array
from functools import cached_property

from ng_capture.chains.divergence import Divergence
from ng_capture.ingest.exchange import Exchange
from ng_capture.tokenizer import Tokenizer

_WINDOW = 4096


class Edge:
    """A parent's sequence (`held`, of which `prompt_len` ids are its prompt) and the prompt that leaves it (`new`).

    `parent` and `child` are the raw calls, where they were captured. `stops` are the ids that the other generations of
    the rollout end in, `first_prompt_len` the ids before its first answer. Texts need the tokenizer; they are those of
    the ids around the divergence, at most some thousands of them.
    """

    def __init__(
        self,
        divergence: Divergence,
        held: "array[int]",
        prompt_len: int,
        new: "array[int]",
        *,
        finish_reason: str | None = None,
        parent: Exchange | None = None,
        child: Exchange | None = None,
        tokenizer: Tokenizer | None = None,
        stops: frozenset[int] = frozenset(),
        first_prompt_len: int = 0,
    ) -> None:
        self.divergence = divergence
        self.held = held
        self.prompt_len = prompt_len
        self.new = new
        self.finish_reason = finish_reason
        self.parent = parent
        self.child = child
        self.tokenizer = tokenizer
        self.stops = stops
        self.first_prompt_len = first_prompt_len

    @property
    def at(self) -> int:
        """Where the first difference is."""
        return self.divergence.common_len

    @property
    def held_run(self) -> "array[int]":
        """The held ids that differ."""
        return self.held[self.at : self.at + self.divergence.held_run][:_WINDOW]

    @property
    def new_run(self) -> "array[int]":
        """The ids in their place."""
        return self.new[self.at : self.at + self.divergence.new_run][:_WINDOW]

    @property
    def held_rest(self) -> "array[int]":
        """All held ids from the first difference on."""
        return self.held[self.at : self.at + _WINDOW]

    @property
    def new_rest(self) -> "array[int]":
        return self.new[self.at : self.at + _WINDOW]

    @cached_property
    def answer_start(self) -> int:
        """Where the text begins in which the difference lies: the last answer, or some ids before the difference."""
        return self.prompt_len if self.at >= self.prompt_len else max(0, self.at - _WINDOW)

    @property
    def texts_equal(self) -> bool:
        """True if the differing runs are the same text, or the one is how the other begins where they never meet."""
        held, new = self.data(self.held_run), self.data(self.new_run)
        meets = self.divergence.held_meets is not None
        return held == new if meets else bool(held) and new.startswith(held)

    def text(self, ids: "array[int]") -> str:
        assert self.tokenizer is not None
        return self.tokenizer.text(ids)

    def data(self, ids: "array[int]") -> bytes:
        assert self.tokenizer is not None
        return self.tokenizer.bytes(ids)
