"""ATIF as a contract: what its documents may hold, and what reading and writing them may lose."""

from collections.abc import Iterator

from ng_capture.contracts.atif.foreign import foreign_format, looks_like_atif
from ng_capture.contracts.atif.read import read
from ng_capture.contracts.atif.validate import CONTRACT, check_source
from ng_capture.contracts.atif.write import write
from ng_capture.contracts.interface import Contract, Feature, Head, Reader, Writer
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source

_LOSSES: dict[str, Feature | None] = {
    "agent_name_unknown": None,
    "agent_version_unknown": None,
    "call_id_unknown": None,
    "instructions_as_system": Feature.SYSTEM,
    "developer_role": Feature.DEVELOPER,
    "reasoning_segments_joined": Feature.SUMMARIES,
    "reasoning_summary_dropped": Feature.SUMMARIES,
    "reasoning_encrypted_opaque": Feature.ENCRYPTED_REASONING,
    "arguments_not_object": Feature.ANY_ARGUMENTS,
    "parts_flattened": Feature.PARTS,
    "media_omitted": Feature.MEDIA,
    "media_type_unknown": Feature.MEDIA,
    "content_type_unsupported": Feature.OTHER_CONTENT,
    "item_type_mapped": Feature.OTHER_ITEMS,
    "item_type_opaque": Feature.OTHER_ITEMS,
    "step_fields_dropped": Feature.METADATA,
    "subagent_by_session": Feature.SUBAGENTS,
    "tokens_incomplete": Feature.TOKENS,
    "tokens_placeholder": Feature.TOKENS,
    "timestamps_dropped": Feature.TIMES,
    "tool_definition_not_function": Feature.SERVER_TOOLS,
    "row_fields_dropped": Feature.ROW,
}


def _recognises(head: Head) -> bool:
    """ATIF, and what claims to be a trajectory and nobody reads, so that it is refused by its name."""
    foreign = foreign_format(head.value)
    return looks_like_atif(head.value) or (foreign is not None and foreign.contract is None)


def _validate(source: Source) -> Iterator[Fault]:
    yield from check_source(source).faults


ATIF = Contract(
    name=CONTRACT,
    title="ATIF trajectory",
    authority="the steps of a rollout as people and other tools read them",
    join_key="trajectory_id, session_id",
    reader=Reader(_recognises, read, gives=frozenset(Feature), validate=_validate),
    writer=Writer(write, suffix=".atif.json", losses=_LOSSES, whole=True),
)
