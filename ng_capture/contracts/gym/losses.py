"""What rows may hold, and what reading and writing them may lose (contracts.md 3.4 and 3.6)."""

from ng_capture.contracts.interface import Feature

ROW_GIVES = frozenset(
    {
        Feature.SYSTEM,
        Feature.DEVELOPER,
        Feature.REASONING,
        Feature.ENCRYPTED_REASONING,
        Feature.SUMMARIES,
        Feature.PARTS,
        Feature.MEDIA,
        Feature.OTHER_CONTENT,
        Feature.OTHER_ITEMS,
        Feature.ANY_ARGUMENTS,
        Feature.UNLINKED_RESULTS,
        Feature.FAILED_RESULTS,
        Feature.TOOLS,
        Feature.SERVER_TOOLS,
        Feature.TOKENS,
        Feature.USAGE,
        Feature.TIMES,
        Feature.FINISH,
        Feature.REQUEST,
        Feature.COPIED,
        Feature.SUBAGENTS,
        Feature.REWARD,
        Feature.ROW,
        Feature.METADATA,
    }
)
"""What an episode of a row may hold."""

READ = frozenset(
    {
        *("step_boundary_inferred", "copied_context", "call_without_output", "output_unlinked", "output_duplicate"),
        *("tokens_placeholder", "tokens_incomplete", "tokens_dropped", "tokens_multiple_items"),
        *("think_tags_in_text", "think_tags_split", "item_order_changed", "content_type_unsupported"),
        "usage_mismatch",
    }
)
"""What reading items may report."""

WRITTEN: dict[str, Feature | None] = {
    "item_type_opaque": Feature.OTHER_ITEMS,
    "item_type_mapped": Feature.OTHER_ITEMS,
    "content_type_unsupported": Feature.OTHER_CONTENT,
    "parts_flattened": Feature.PARTS,
    "media_omitted": Feature.MEDIA,
    "is_error_dropped": Feature.FAILED_RESULTS,
    "link_by_position": Feature.UNLINKED_RESULTS,
    "link_ambiguous": Feature.UNLINKED_RESULTS,
    "output_unlinked": Feature.UNLINKED_RESULTS,
    "call_without_output": None,
    "call_id_unknown": None,
    "tokens_incomplete": Feature.TOKENS,
    "tokens_dropped": Feature.TOKENS,
    "usage_dropped": Feature.USAGE,
    "usage_includes_subagents": Feature.USAGE,
    "cache_write_dropped": Feature.CACHE_WRITES,
    "step_fields_dropped": None,
    "timestamps_dropped": Feature.TIMES,
    "metadata_dropped": Feature.METADATA,
    "finish_reason_dropped": Feature.FINISH,
    "request_fields_dropped": Feature.REQUEST,
    "tool_definition_not_function": Feature.SERVER_TOOLS,
    "subagent_dropped": Feature.SUBAGENTS,
    "system_step_in_output": Feature.SYSTEM,
    "no_model_call": Feature.NO_MODEL,
    "mark_dropped": None,
}
"""What writing items may report, and what there must be for it."""
