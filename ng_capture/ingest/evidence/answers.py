"""The answers of a response, apart: one a choice (ingest.md 1.5)."""

from collections.abc import Mapping

import msgspec

from ng_capture.records.json_text import object_in, objects_in


class Answer(msgspec.Struct, frozen=True, eq=False):
    """One answer and all that stands around it.

    `choice` is the response itself in dialects that give one answer. `index` is what the server counts it as.
    `processed` tells that of two log probabilities of a token the sampler's is wanted, not the model's.
    """

    request: Mapping[str, object]
    response: Mapping[str, object]
    choice: Mapping[str, object]
    index: int = 0
    processed: bool = False

    @property
    def message(self) -> Mapping[str, object]:
        return object_in(self.choice.get("message"))

    @property
    def meta_info(self) -> Mapping[str, object]:
        """What SGLang and LMDeploy say of an answer."""
        return object_in(self.choice.get("meta_info"))


def answers_of(
    request: Mapping[str, object], response: Mapping[str, object], *, processed: bool = False
) -> tuple[Answer, ...]:
    """All answers by their index, at least one; they are counted as they stand where their indexes are no numbering."""
    choices = list(objects_in(response.get("choices"))) or list(objects_in(response.get("sequences")))
    if not choices:
        return (Answer(request, response, response, processed=processed),)
    indexes = [index for choice in choices if type(index := choice.get("index")) is int and index >= 0]
    if len(set(indexes)) < len(choices):
        indexes = list(range(len(choices)))
    found = [Answer(request, response, *place, processed) for place in zip(choices, indexes, strict=True)]
    return tuple(sorted(found, key=lambda answer: answer.index))
