"""Documents of an API read: a request, a response, a pair of both, or a bare list of messages (contracts.md 4)."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ng_capture.contracts.dialects.beside import WEIGHT
from ng_capture.contracts.dialects.fields import others, text_in
from ng_capture.contracts.dialects.interface import Answered, Asked, Dialect
from ng_capture.contracts.dialects.streamed import unstreamed
from ng_capture.contracts.documents import Found, values_in
from ng_capture.contracts.episode import Agent, Episode, Json, Thread, Turn
from ng_capture.contracts.interface import Feature, Options, Read, Refused
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from ng_capture.records.json_text import object_in, printable

GIVES = frozenset(
    {
        *(Feature.SYSTEM, Feature.REASONING, Feature.SUMMARIES, Feature.PARTS, Feature.MEDIA, Feature.OTHER_CONTENT),
        *(Feature.OTHER_ITEMS, Feature.ANY_ARGUMENTS, Feature.UNLINKED_RESULTS, Feature.TOOLS, Feature.SERVER_TOOLS),
        *(
            Feature.USAGE,
            Feature.FINISH,
            Feature.REQUEST,
            Feature.COPIED,
            Feature.REWARD,
            Feature.ROW,
            Feature.METADATA,
        ),
    }
)
"""What requests and responses of both APIs may hold."""
LINKING = ("item_order_changed", "link_ambiguous", "link_by_position", "output_unlinked")
"""What linking results to calls may report."""


class Document(msgspec.Struct, frozen=True):
    """What a document holds; `spoken` tells that it is a conversation, whose turns are no call's history.

    The pointers say where request and response stand in it. `rest` are its other fields. `truncated` tells that the
    response is one whose stream was cut.
    """

    request: Json | None = None
    response: Json | None = None
    request_place: str = ""
    response_place: str = ""
    spoken: bool = False
    rest: Json | None = None
    losses: tuple[Loss, ...] = ()
    truncated: bool = False


class Api(msgspec.Struct, frozen=True):
    """A dialect and its documents: what a value is to it, None for what is not of it, and how its text tells more."""

    dialect: Dialect
    shape: Callable[[Any], Document | None]
    spelled: Callable[[Any, str], Any] | None = None

    def read(self, source: Source, options: Options) -> Iterator[Read | Refused]:
        """One outcome for each value of a source."""
        for found in values_in(source, self.dialect.name):
            yield self._read(found, options)

    def _read(self, found: Found, options: Options) -> Read | Refused:
        name = self.dialect.name
        if not found.certain:
            return Refused(found.faults, place=found.place)
        value = found.value
        if self.spelled is not None:
            value = self.spelled(value, found.data.decode("utf-8", "surrogatepass").removeprefix("\ufeff"))
        document = self.shape(value)
        if document is None:
            message = f"no request, response or list of messages of the {name} API"
            return Refused((*found.faults, Fault(f"{name}.shape", "error", message, line=found.line)), (), found.place)
        made = self._made(document, options)
        if not made.episode.main.turns:
            empty = Fault(f"{name}.empty", "error", "nothing was said: nothing to convert", line=found.line)
            return Refused((*found.faults, empty), place=found.place)
        return msgspec.structs.replace(made, faults=found.faults, place=found.place)

    def _made(self, document: Document, options: Options) -> Read:
        asked, answered = Asked(()), Answered(None)
        if document.request is not None:
            asked = self.dialect.asked(document.request, options)
        if document.response is not None:
            answered = self.dialect.answered(document.response, options)
        turns = [_placed(turn, document.request_place) for turn in asked.turns]
        if document.spoken:
            turns = [msgspec.structs.replace(turn, copied=False) if _is_output(turn) else turn for turn in turns]
        if answered.turn is not None:
            turns.append(_placed(answered.turn, document.response_place))
        losses = (
            *document.losses,
            *(_moved(loss, document.request_place) for loss in asked.losses),
            *(_moved(loss, document.response_place) for loss in answered.losses),
        )
        return Read(_episode(self.dialect, document, asked, turns, options), losses)


def _episode(dialect: Dialect, document: Document, asked: Asked, turns: list[Turn], options: Options) -> Episode:
    answer = turns[-1].call if turns else None
    model = (answer.model if answer is not None else None) or text_in(asked.parameters or {}, "model")
    rest = document.rest or {}
    reward = rest.get("reward")
    known = isinstance(reward, int | float) and not isinstance(reward, bool)
    return Episode(
        contract=dialect.name,
        main=Thread(
            turns=tuple(turns),
            agent=Agent(options.agent_name, options.agent_version, model, asked.tools),
            session_id=options.session_id,
        ),
        rollout_id=printable(told) if (told := text_in(rest, "rollout_id")) is not None else None,
        reward=float(reward) if known else None,  # type: ignore[arg-type]
        request=asked.parameters,
        truncated=True if document.truncated else None,
        row=others(rest, "rollout_id", *(("reward",) if known else ())),
    )


def pair_in(value: object, dialect: str) -> Document | None:
    """A pair: fields `request` and `response`, or one of them; a response that is a text is the text of its stream."""
    if not isinstance(value, dict) or not ({"request", "response"} & value.keys()):
        return None
    whole = unstreamed(value, dialect)
    return Document(
        request=object_in(value.get("request")),
        response=object_in(whole.value.get("response")),
        request_place="/request",
        response_place="/response",
        rest=others(value, "request", "response"),
        losses=whole.losses,
        truncated=whole.truncated,
    )


def _is_output(turn: Turn) -> bool:
    """True for a turn of a conversation that says something, and is not marked as nothing to learn from."""
    return (turn.content is not None or bool(turn.thoughts or turn.calls)) and (turn.item or {}).get(WEIGHT) != 0


def _placed(turn: Turn, before: str) -> Turn:
    return msgspec.structs.replace(turn, place=f"{before}{turn.place}") if before else turn


def _moved(loss: Loss, before: str) -> Loss:
    return msgspec.structs.replace(loss, path=f"{before}{loss.path}") if before else loss
