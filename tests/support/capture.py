"""A rollout as it lies on disk, and what faults have done to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.support.forge import Call, Files, Forge, Row, canonical, compressed, in_lines


@dataclass(eq=False, repr=False)
class Capture:
    """One rollout as it lies on disk.

    `scored` is the call that the finished `row` names, None where nothing names one. What the faults do:
    `whole`: they may mean a lost call, so nothing is trained under any policy;
    `nowhere`: these calls are in no training row; `silent`: these calls carry no loss;
    `touched`: these calls' records, lines or links are not as they should be. `done` names the faults.
    """

    forge: Forge
    scored: Call | None = None
    row: Row | None = None
    state: Row | None = None
    intents: list[str] | None = None
    exchanges: list[Row] | None = None
    marks: bytes | None = None
    lines: list[tuple[str, bytes]] = field(default_factory=list)
    head: bytes = b""
    tail: bytes = b""
    last_break: bytes = b"\n"
    done: list[str] = field(default_factory=list)
    whole: bool = False
    nowhere: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        scored = f"scored {self.scored.name}" if self.scored else "nothing scored"
        return f"<{self.forge!r}, {scored}, with {self.kept}, faults {self.done}>"

    @property
    def kept(self) -> list[str]:
        """What is kept beside the records and would tell of a lost one."""
        beside = {"state": self.state, "intents": self.intents, "exchanges": self.exchanges}
        return [name for name, value in beside.items() if value is not None]

    @property
    def call(self) -> Mapping[str, Call]:
        return {call.id: call for call in self.forge.calls}

    def files(self) -> Files:
        """The rollout's files with one plain file of records."""
        data = in_lines(line for _, line in self.lines).removesuffix(b"\n") + self.last_break if self.lines else b""
        return {"r-1.tokens.jsonl": self.head + data + self.tail} | self.beside()

    def files_in(self, order: Iterable[int], parts: Iterable[str]) -> Files:
        """The same lines in another order, each in the part that its place in `parts` names ("", ".gz", ".zst")."""
        placed = list(zip(order, parts, strict=False))
        names = dict.fromkeys([part for _, part in placed] or [""])
        texts = {name: in_lines(self.lines[i][1] for i, part in placed if part == name) for name in names}
        return {f"r-1.tokens.jsonl{name}": compressed(text, name) for name, text in texts.items()} | self.beside()

    def beside(self) -> Files:
        """Everything but the records."""
        files = {}
        if self.state is not None:
            files["r-1.tokens.state.json"] = canonical(self.state) + b"\n"
        if self.intents is not None:
            files["r-1.tokens.intents"] = in_lines(name.encode() for name in self.intents)
        if self.exchanges is not None:
            files["r-1.capture.jsonl"] = in_lines(orjson.dumps(exchange) for exchange in self.exchanges)
        if self.marks is not None:
            files["r-1.tokens.incomplete"] = self.marks
        return files

    def path(self) -> set[str]:
        """The scored call and everything before it, through which it may have been joined."""
        ids, here = set(), self.scored
        while here is not None:
            ids.add(here.id)
            here = here.parent
        return ids
