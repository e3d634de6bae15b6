"""Which invariant a field of a row is about, by its number (policies-and-exports.md 3)."""

from collections.abc import Iterable, Mapping

RECEIPT = "receipt"
"""What a receipt, its output and the captures contradict each other in."""

NUMBERED: Mapping[str, str] = {
    "I1": "its tokens, turns, calls or spans are not those of the captures, or no capture makes it",
    "I2": "a call's prompt in it does not go on from what stands before",
    "I3": "loss stands where nothing was generated, or where the token is not trained in this row",
    "I5": "it stands there twice: its tokens are trained twice",
    "I6": "a token, or a whole row, that would be trained is not, or is accounted for otherwise",
    "I7": "its arrays have not the lengths and types of its format",
    "I8": "a trained token's log probability is not finite, above 0, or a sentinel",
    "I9": "a token without loss has a log probability",
    "I11": "the first token carries loss: nothing predicts it",
    "I12": "no token carries loss",
    "I15": "it tells otherwise why a generation stopped",
    "I16": "it names another model",
    "I17": "it names other weights",
    "I18": "reward, weight or identity are not those of its rollout",
    "I19": "its group is not that of its rollout, or its advantage not that over its group",
    "I20": "it does not stand in the order of its rollout, or not beside its other rows",
    "I21": "it names another call as the one that was scored",
    "I27": "an id is no integer of 0 to 2^31 - 1",
    "I28": "the routed experts of a token are others",
    "I29": "its tools are others",
    "I31": "its attention is not 1 on every token",
    "I32": "any other value is not the one that was captured, chosen or known",
    RECEIPT: "receipt, output and captures do not belong together",
}
"""What a row does that breaks each of those which a file can break."""

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "I1": (
        *("tokens", "input_ids", "labels", "prompt_ids", "completion_ids", "response_ids"),
        *("prompts", "responses", "target_tokens", "prompt", "response", "output"),
        *("calls", "call_id", "spans", "kind", "start", "end", "call_offset"),
        *("model_input_spans", "loss_fn_input_spans", "sequence_id", "offset", "length", "messages"),
    ),
    "I2": ("prompt_token_ids", "generation_token_ids"),
    "I3": ("loss_mask", "loss_masks", "env_mask", "response_mask", "prompt_mask", "completion_mask", "mask_sample"),
    "I6": ("accounting",),
    "I7": ("dtype", "shape", "response_length"),
    "I15": ("truncated", "finish_reasons", "stop_reasons", "status"),
    "I16": ("model",),
    "I17": ("weight_version", "weight_versions"),
    "I18": (
        *("reward", "score", "rewards", "chosen_reward", "rejected_reward", "weights", "row_weight"),
        *("rollout_id", "_ng_rollout_id", "trajectory_ids", "chosen_rollout_id", "rejected_rollout_id"),
        *("trajectory_index", "n_trajectories", "rollout_trainable_tokens"),
    ),
    "I19": ("group_id", "uid", "group_index", "_ng_task_index", "advantage", "advantages"),
    "I20": ("is_last_step",),
    "I21": ("terminal",),
    "I28": ("routed_experts",),
    "I29": ("tools",),
    "I31": ("attention_mask",),
}
_OF_A_FIELD = {name: invariant for invariant, names in _FIELDS.items() for name in names}
_ANY_OTHER = "I32"


def invariant_of(path: Iterable[str]) -> str:
    """The invariant of the innermost name of a path that is about one."""
    return next((_OF_A_FIELD[name] for name in reversed(tuple(path)) if name in _OF_A_FIELD), _ANY_OTHER)
