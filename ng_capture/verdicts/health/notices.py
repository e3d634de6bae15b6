"""What an unexpected value usually means, and what to look at next."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ng_capture.verdicts.health.metrics import HealthMetrics
from ng_capture.verdicts.health.names import as_object, number_of
from ng_capture.verdicts.health.tally import UNSET


class Notice(msgspec.Struct, frozen=True):
    """A metric with a value that a healthy run does not have."""

    metric: str
    value: float | None
    means: str
    look_at: str


class _Sign(NamedTuple):
    metric: str
    shows: Callable[[HealthMetrics], bool]
    means: str
    look_at: str
    value: Callable[[HealthMetrics], float] | None = None
    also: tuple[str, ...] = ()

    def told_by(self, metrics: HealthMetrics) -> str:
        """The metric that shows it: of reasons that mean the same the first that stands there."""
        names = (self.metric, *self.also)
        return next((name for name in names if number_of(as_object(metrics), name)), self.metric)


def notices(metrics: HealthMetrics) -> list[Notice]:
    """Everything that is worth a look, the worst first."""
    return [_notice(sign, metrics) for sign in _SIGNS if sign.shows(metrics)]


def _notice(sign: _Sign, metrics: HealthMetrics) -> Notice:
    metric = sign.told_by(metrics)
    value = number_of(as_object(metrics), metric) if sign.value is None else sign.value(metrics)
    return Notice(metric, value, sign.means, sign.look_at)


def _of(part: int | None, whole: int | None) -> float:
    return (part or 0) / whole if whole else 0.0


def _reason(metrics: HealthMetrics, *names: str) -> float:
    """Share of the rollouts that are masked for one of these reasons."""
    return _of(sum((metrics.reasons or {}).get(name, 0) for name in names), metrics.rollouts)


def _overridden(metrics: HealthMetrics) -> bool:
    """True where calls to one model asked for different temperatures, or cut or bend the distribution."""
    for asked in (metrics.sampling or {}).values():
        for parameter, values in asked.items():
            neutral = _NEUTRAL.get(parameter, set())
            effective = {UNSET if value in neutral else value for value in values}
            if parameter != "seed" and (len(effective) > 1 or (neutral and effective != {UNSET})):
                return True
    return False


def _greedy(metrics: HealthMetrics) -> bool:
    return any("0" in asked.get("temperature", ()) for asked in (metrics.sampling or {}).values())


def _unusable_log_probs(metrics: HealthMetrics) -> int:
    names = (name for name in metrics.findings or () if name.startswith("logprob_") and name != "logprob_all_zero")
    return max(((metrics.findings or {})[name] for name in names), default=0)


def _failed(metrics: HealthMetrics) -> int:
    """Raw calls without an answer; one that ends at its limit is an answer."""
    return sum(number for name, number in (metrics.error_categories or {}).items() if name != "incomplete")


# values that leave the policy's own distribution as it is
_NEUTRAL = {
    "top_p": {"1"},
    "top_k": {"-1", "0"},
    "min_p": {"0"},
    "presence_penalty": {"0"},
    "frequency_penalty": {"0"},
    "repetition_penalty": {"1"},
}

_SIGNS = (
    _Sign(
        "with_calls",
        lambda m: m.rollouts > m.retired + m.unread and not m.with_capture,
        "no call went through the capture address: the harness talks to the model server directly",
        "the base URL that the harness is given: it must hold /ng-rollout/<rollout id>/training-token-capture/v1",
    ),
    _Sign(
        "reasons.empty_capture",
        lambda m: bool(m.with_calls) and _reason(m, "empty_capture") > 0,
        "some rollouts made no captured call: they died before the first one, or their harness lost the address",
        "the harness log of one of them; sub-processes that do not inherit the base URL",
    ),
    _Sign(
        "missing_rollouts",
        lambda m: bool(m.missing_rollouts),
        "the collector died, or names rollouts otherwise than the list of what was asked for",
        "the collector's log from the last captured rollout on; then one id of each side",
    ),
    _Sign(
        "reasons.capture_incomplete",
        lambda m: _reason(m, "capture_incomplete", "torn_tail", "missing_newline") > 0.01,
        "calls were announced and lost: a killed server or collector, a full disk, a path that is not captured",
        "the model server's log at the time of the lost call; calls to other paths under the capture address",
        also=(
            "reasons.torn_tail",
            "reasons.missing_newline",
        ),
    ),
    _Sign(
        "reasons.call_without_tokens",
        lambda m: _reason(m, "call_without_tokens", "partial_tokens") > 0,
        "calls are captured and their token ids are not: the engine does not return them",
        "the engine's options for token ids and log probabilities (return_token_ids, logprobs)",
        also=("reasons.partial_tokens",),
    ),
    _Sign(
        "reasons.prefix_mismatch",
        lambda m: _reason(m, "prefix_mismatch") > 0.02,
        "history is rendered otherwise than generated: the chat template strips reasoning or writes tool calls anew",
        "the first example: ng-capture verify names call and token; then the chat template and its reasoning options",
    ),
    _Sign(
        "reasons.parent_unresolved",
        lambda m: _reason(m, "parent_unresolved", "link_missing") > 0.02,
        "requests that continue no captured call: history was compacted or edited, or a sub-agent is not tagged",
        "the harness's compaction settings; sub-agents need an id of their own",
        also=("reasons.link_missing",),
    ),
    _Sign(
        "reasons.multiple_roots",
        lambda m: _reason(m, "multiple_roots", "multiple_ends") > 0.02,
        "sub-agents or side calls, and nothing that names the scored call",
        "give the finished rows (--rollouts), or train every chain (--policy all)",
        also=("reasons.multiple_ends",),
    ),
    _Sign(
        "reasons.ambiguous_retry",
        lambda m: _reason(m, "ambiguous_retry") > 0.02,
        "the harness asks again after time-outs, and nothing says which answer it kept",
        "the client's time-out and retry settings; the response id in the finished row",
    ),
    _Sign(
        "reasons.terminal_not_captured",
        lambda m: _reason(m, "terminal_not_captured", "witness_disagreement", "terminal_ambiguous") > 0.02,
        "the scored answer is not the captured one: a proxy mints ids, or the answer is rewritten before scoring",
        "response id and text of one finished row beside its last captured call",
        also=(
            "reasons.witness_disagreement",
            "reasons.terminal_ambiguous",
        ),
    ),
    _Sign(
        "tool_single_call_fraction",
        lambda m: (m.tool_single_call_fraction or 0) > 0.5,
        "rollouts that were offered tools end after one call: the engine has no tool parser, tool calls come as text",
        "the engine's tool-call parser (and whether it is switched on), then the text of one answer",
    ),
    _Sign(
        "zero_logprob_calls",
        lambda m: bool(m.zero_logprob_calls),
        "every log probability of a call is 0.0: greedy sampling, or none were returned and zeros stand in",
        "temperature and logprobs in the requests",
    ),
    _Sign(
        "findings",
        lambda m: _unusable_log_probs(m) > 0,
        "log probabilities that no sampled token can have, or too few of them (logprob_...)",
        "the engine's version and log-probability mode; whatever rewrites responses on the way",
        value=_unusable_log_probs,
    ),
    _Sign(
        "findings.schema_too_new",
        lambda m: bool((m.findings or {}).get("schema_too_new")),
        "records of a newer version than this one understands",
        "a newer ng-capture: pip install --upgrade ng-capture",
    ),
    _Sign(
        "reasons.no_generated_tokens",
        lambda m: _reason(m, "no_generated_tokens") > 0,
        "every call of a rollout generated nothing: the engine refused or aborted them",
        "the engine's log; the longest prompts (prompt_lengths)",
    ),
    _Sign(
        "length_stopped_calls",
        lambda m: _of(m.length_stopped_calls, m.calls) > 0.1,
        "many answers are cut at their limit",
        "max_tokens of the requests, and the context length of the engine",
    ),
    _Sign(
        "empty_generation_calls",
        lambda m: _of(m.empty_generation_calls, m.n_calls) > 0.05,
        "calls that generated nothing: the engine refused them, most often for the context length",
        "the engine's log; the longest prompts (prompt_lengths)",
    ),
    _Sign(
        "quarantined_fraction",
        lambda m: (m.quarantined_fraction or 0) > 0.1,
        "many calls were asked again: time-outs or rate limits between harness and server",
        "error_categories and latency_ms; the client's time-out",
    ),
    _Sign(
        "error_categories",
        lambda m: _of(_failed(m), m.raw_calls) > 0.05,
        "calls failed at the server",
        "the categories by number; the server's log",
        value=_failed,
    ),
    _Sign(
        "damaged_lines",
        lambda m: bool(m.damaged_lines),
        "raw calls that cannot be read: a killed writer, or two writers without a lock",
        "the lines named by ng-capture verify",
    ),
    _Sign(
        "calls_with_partial_usage",
        lambda m: _of(m.calls_with_partial_usage, m.raw_calls) > 0.1,
        "usage is not reported for these calls: sums of tokens are too low",
        "stream_options.include_usage of the requests; the proxy between harness and server",
    ),
    _Sign(
        "sampling",
        _overridden,
        "requests do not sample one and the same way: a harness overrides the policy's sampling, and log probabilities "
        "are those of another distribution",
        "the values by model (-f json, metrics.sampling); the harness's own defaults",
    ),
    _Sign(
        "sampling",
        _greedy,
        "requests ask for temperature 0: every rollout of a task is the same, and log probabilities say nothing",
        "the harness's own defaults; whether this is an evaluation",
    ),
    _Sign(
        "shared_seed_rollouts",
        lambda m: bool(m.shared_seed_rollouts),
        "rollouts share a seed: those of one task may be copies of one another",
        "the seed in the requests; leave it out, or give each rollout its own",
    ),
    _Sign(
        "models",
        lambda m: len(m.models or {}) > 1 and "foreign_model" not in (m.lost_by_reason or {}),
        "more than one model was called: helper models are not the policy",
        "ng-capture health --policy-model NAME, where one of them is trained",
        value=lambda m: len(m.models or {}),
    ),
    _Sign(
        "abandoned",
        lambda m: bool(m.abandoned),
        "rollouts end in an open call, were not written for an hour, and nobody holds them: their process died",
        "the collector's log; run them again",
    ),
    _Sign(
        "running",
        lambda m: bool(m.running),
        "rollouts are still being written: their verdict is not the last one",
        "the same command once the run has ended, or --watch",
    ),
    _Sign(
        "retired",
        lambda m: bool(m.retired) and m.retired == m.rollouts,
        "every capture was handed off and dropped: nothing is left here to judge",
        "the file that was rebuilt from them: ng-capture health OUT.jsonl",
    ),
)
