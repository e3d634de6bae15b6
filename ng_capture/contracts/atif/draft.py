"""A document while it is written: what it loses, the files that it names, whether it has sounds."""

from ng_capture.contracts.atif.schema import spelled
from ng_capture.contracts.episode import Episode
from ng_capture.contracts.interface import AtifVersion, Options, SideFile
from ng_capture.contracts.losses import Loss

_FORMS = frozenset(
    {
        "developer_role",
        "instructions_as_system",
        "reasoning_segments_joined",
        "reasoning_summary_dropped",
        "reasoning_encrypted_opaque",
        "arguments_not_object",
        "call_id_unknown",
        "content_type_unsupported",
        "media_type_unknown",
        "tokens_placeholder",
        "tokens_incomplete",
        "timestamps_dropped",
        "agent_name_unknown",
        "agent_version_unknown",
        "tool_definition_not_function",
        "item_type_mapped",
        "item_type_opaque",
    }
)
"""What an ATIF document that is read has lost already: its notes gave it back, and they are written again."""
_WITHOUT_SOUNDS = spelled(7)


class Draft:
    """What is told of a document on the way; `same` tells that it was ATIF before."""

    def __init__(self, episode: Episode, options: Options) -> None:
        self.episode = episode
        self.options = options
        self.same = episode.contract == "atif"
        self.losses = list[Loss]()
        self.files = dict[str, SideFile]()
        self.has_sounds = False

    @property
    def name(self) -> str:
        """What tells the episode from others, for ids that are made."""
        main = self.episode.main
        return self.episode.rollout_id or main.trajectory_id or main.session_id or ""

    @property
    def was_without_sounds(self) -> bool:
        """True for a document of v1.7, which has lost its sounds already and stays what it was."""
        return self.same and self.episode.version == _WITHOUT_SOUNDS

    @property
    def takes_sounds(self) -> bool:
        """True where the version may become v1.8 for a sound."""
        asked = self.options.atif_version
        return not self.was_without_sounds if asked is None else asked is AtifVersion.V1_8

    @property
    def version(self) -> str:
        """The version to write: v1.7, and v1.8 only for a sound or where it is asked for (contracts.md 1.6)."""
        if self.options.atif_version is not None:
            return f"ATIF-v{self.options.atif_version}"
        return spelled(8) if self.has_sounds else _WITHOUT_SOUNDS

    def lose(self, code: str, path: str, detail: str | None = None) -> None:
        """Tells a loss, unless the document had lost it before."""
        if not (self.same and code in _FORMS):
            self.losses.append(Loss(code, path, detail=detail))
