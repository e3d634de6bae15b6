"""The contract `gym`: finished rows, read and written."""

from ng_capture.contracts.episode import Episode
from ng_capture.contracts.gym.harbor import write_harbor
from ng_capture.contracts.gym.losses import READ, ROW_GIVES, WRITTEN
from ng_capture.contracts.gym.native import write_row
from ng_capture.contracts.gym.reading import PARAMETERS, RESPONSE, read_rows
from ng_capture.contracts.gym.strict import write_strict
from ng_capture.contracts.gym.validation import validate_rows
from ng_capture.contracts.interface import Contract, Feature, Head, Options, Profile, Reader, Refused, Writer, Written


def recognises(head: Head) -> bool:
    """True for a finished row: what names its rollout, or a request that was run with its response or reward."""
    if head.has("_ng_rollout_id") or head.has("_ng_task_index"):
        return True
    return head.has(PARAMETERS) and (head.has(RESPONSE) or head.has("ng_trajectory") or head.has("reward"))


def write(episode: Episode, options: Options) -> Written | Refused:
    """A row in the form of the profile."""
    match options.profile:
        case Profile.HARBOR:
            return write_harbor(episode)
        case Profile.STRICT:
            return write_strict(episode, options)
    return write_row(episode, options)


GYM = Contract(
    name="gym",
    title="Finished rows of NeMo Gym: request, response with every item, reward, `ng_trajectory`",
    authority="the reward, and the conversation that was scored",
    join_key="`_ng_task_index`-`_ng_rollout_index`, or `_ng_rollout_id`",
    reader=Reader(
        recognises=recognises,
        read=read_rows,
        gives=ROW_GIVES,
        losses=READ | {"subagent_parent_unknown"},
        validate=validate_rows,
    ),
    writer=Writer(
        write=write,
        suffix=".rows.jsonl",
        losses=WRITTEN
        | {
            "copied_context": Feature.COPIED,
            "reasoning_segments_joined": Feature.SUMMARIES,
            "reasoning_signature_dropped": Feature.ENCRYPTED_REASONING,
            "reasoning_summary_dropped": Feature.SUMMARIES,
            "row_fields_dropped": Feature.ROW,
            "tools_dropped": Feature.TOOLS,
            "usage_unknown": None,
        },
    ),
)
