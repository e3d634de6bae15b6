"""What the user wants of a conversion (contracts.md 3.4 to 3.6)."""

from enum import StrEnum
from pathlib import Path

import msgspec

from ng_capture.files.listing import EVERYTHING, Selection


class Profile(StrEnum):
    """How Responses are written: the whole episode, as Gym's Harbor mapping does, or refused instead of lost (3.6)."""

    NATIVE = "native"
    HARBOR = "harbor"
    STRICT = "strict"


class Thinking(StrEnum):
    """What becomes of think tags in texts: split in chat alone, always, or never (contracts.md 4.6 and 3.4, 3)."""

    AUTO = "auto"
    SPLIT = "split"
    KEEP = "keep"


class AtifVersion(StrEnum):
    """The versions of ATIF that are written."""

    V1_7 = "1.7"
    V1_8 = "1.8"


class Options(msgspec.Struct, frozen=True):
    """What the user wants of a conversion; each is named in contracts.md 3.4 to 3.6 and 5.3.

    `terminus`: read commands out of a Terminus message. `subagents`: one further row for each embedded trajectory.
    `metrics_only`: also convert records that hold no conversation. `media_dir`: where images of data URLs go, by its
    name as the document shall name it. `inline_media`: images that lie beside the source become data URLs. `selection`:
    rollouts by their ids.
    """

    profile: Profile = Profile.NATIVE
    thinking: Thinking = Thinking.AUTO
    terminus: bool = False
    subagents: bool = False
    metrics_only: bool = False
    keep_row_extras: bool = False
    media_dir: Path | None = None
    inline_media: bool = False
    atif_version: AtifVersion | None = None
    agent_name: str | None = None
    agent_version: str | None = None
    session_id: str | None = None
    selection: Selection = EVERYTHING
