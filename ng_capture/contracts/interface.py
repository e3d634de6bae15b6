"""What a contract is here: a reader that makes episodes of it, a writer that makes it of one (contracts.md 3.3)."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from ng_capture.contracts.choices import AtifVersion as AtifVersion
from ng_capture.contracts.choices import Options as Options
from ng_capture.contracts.choices import Profile as Profile
from ng_capture.contracts.choices import Thinking as Thinking
from ng_capture.contracts.episode import Episode
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source


class Feature(StrEnum):
    """What an episode may hold that not every contract has a place for."""

    SYSTEM = "system turns"
    DEVELOPER = "developer turns"
    REASONING = "reasoning"
    ENCRYPTED_REASONING = "encrypted reasoning"
    SIGNATURES = "signatures of thinking"
    SUMMARIES = "several pieces of reasoning"
    PARTS = "content in parts"
    MEDIA = "images and sounds"
    OTHER_CONTENT = "content of other kinds"
    OTHER_ITEMS = "items of other kinds"
    ANY_ARGUMENTS = "arguments that are no object"
    UNLINKED_RESULTS = "results that name no call"
    FAILED_RESULTS = "marks of failed tools"
    TOOLS = "tools offered"
    SERVER_TOOLS = "tools that the server runs"
    TOKENS = "token ids and log probabilities"
    USAGE = "token counts"
    CACHE_WRITES = "tokens written to the cache"
    TIMES = "times"
    FINISH = "why a call ended"
    REQUEST = "parameters of requests"
    COPIED = "history of earlier calls"
    NO_MODEL = "steps that no model made"
    SUBAGENTS = "sub-agents"
    REWARD = "reward"
    ROW = "fields of a finished row"
    METADATA = "ids, notes and extras"


class Read(msgspec.Struct, frozen=True):
    """An episode with what its contract could not tell us, and the faults of its document that do not forbid it.

    `place` is where it stands in the source: a line, an id, or nothing where it is all of it.
    """

    episode: Episode
    losses: tuple[Loss, ...] = ()
    faults: tuple[Fault, ...] = ()
    place: str = ""


class Refused(msgspec.Struct, frozen=True):
    """A document, or a line of one, that no episode is made of, or that cannot be written; `faults` say why."""

    faults: tuple[Fault, ...]
    losses: tuple[Loss, ...] = ()
    place: str = ""


class SideFile(msgspec.Struct, frozen=True):
    """A file that a document names: its name as the document has it, and its bytes."""

    name: str
    data: bytes


class Written(msgspec.Struct, frozen=True):
    """The JSON documents of an episode, one a line, what they do not hold, and the files that they name."""

    documents: tuple[bytes, ...]
    losses: tuple[Loss, ...] = ()
    files: tuple[SideFile, ...] = ()


class Head(msgspec.Struct, frozen=True):
    """What is looked at to tell contracts apart: the name, and the first JSON value of the file, whatever it is.

    Of a folder it is the list of the names of what lies in it.
    """

    file_name: str
    is_folder: bool
    value: Any

    def has(self, *keys: str) -> bool:
        """True if the value is an object with all of these keys."""
        return isinstance(self.value, dict) and all(key in self.value for key in keys)


class Reader(msgspec.Struct, frozen=True):
    """A contract as it is read.

    `gives` is what its episodes may hold, `losses` the codes that reading it may report. `read` yields one outcome for
    each document; it raises nothing but SurroundingsError. `validate` tells all faults of a source at once. `folders`
    tells that a folder is one source, else each of its files is.
    """

    recognises: Callable[[Head], bool]
    read: Callable[[Source, Options], Iterator[Read | Refused]]
    gives: frozenset[Feature]
    losses: frozenset[str] = frozenset()
    validate: Callable[[Source], Iterator[Fault]] | None = None
    folders: bool = False


class Writer(msgspec.Struct, frozen=True):
    """A contract as it is written.

    `losses` are the codes that writing it may report, each with the feature without which it cannot happen, None where
    it always can. `suffix` (`.atif.json`) ends the name of a file that holds one episode; `whole` tells that a file
    holds just one document, else it holds one a line.
    """

    write: Callable[[Episode, Options], Written | Refused]
    suffix: str
    losses: Mapping[str, Feature | None]
    whole: bool = False


class Contract(msgspec.Struct, frozen=True):
    """A contract around a rollout: its name for `--from` and `--to`, and what it is authoritative for (the map)."""

    name: str
    title: str
    authority: str
    join_key: str
    reader: Reader | None = None
    writer: Writer | None = None


def losses_between(reader: Reader, writer: Writer) -> frozenset[str]:
    """The codes that a conversion may report."""
    written = {code for code, feature in writer.losses.items() if feature is None or feature in reader.gives}
    return reader.losses | written
