"""An actor's calls of models: what each request adds to those before it, and what was answered (contracts.md 2.4)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from ng_capture.contracts.atof.extras import Extras, with_ours
from ng_capture.contracts.atof.payloads import answered_in, asked_in, has_failed
from ng_capture.contracts.atof.requests import Requests
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.atof.told import ToldResult
from ng_capture.contracts.dialects.interface import Asked
from ng_capture.contracts.episode import Json, ModelCall, Role, Turn
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.sameness import spoken
from ng_capture.records.json_text import object_in

_MESSAGE = re.compile(r"/(?:messages|input)/(\d+)", re.ASCII)
_LINKS = frozenset({"link_by_position", "link_ambiguous", "output_unlinked"})


class ModelCalls:
    """Requests and answers in their order; `results`, `failed` and `losses` are as in `Told`."""

    def __init__(self, extras: Extras, options: Options) -> None:
        self._extras, self._options = extras, options
        self._requests, self._ends, self._asked = Requests(), dict[str, int](), dict[str, Asked]()
        self._announced, self._rewritten = Counter[object](), False
        self._made, self._call_ids = set[object](), set[str]()
        self.results = dict[tuple[str, int], ToldResult]()
        self.failed, self.losses = list[Json](), list[Loss]()

    @property
    def first(self) -> Asked | None:
        """The first request."""
        return next(iter(self._asked.values()), None)

    def announce(self, turn: Turn) -> None:
        """A turn that is told already, so that the request that brings it tells nothing new."""
        self._announced[spoken(turn)] += 1

    def rewrite(self) -> None:
        """The next request may go on from another history: that was told."""
        self._rewritten = True

    def ask(self, at: int, scope: Scope) -> Iterator[Turn]:
        """The turns that a request tells for the first time."""
        asked = asked_in(scope, self._options)
        if not asked.turns:
            return
        assert scope.start is not None
        new, self._ends[scope.uuid] = self._requests.add(asked.turns)
        if new.rewritten and not self._rewritten:
            self.losses.append(Loss("history_rewritten", new.beyond or scope.start.place))
        self._rewritten = False
        self._remember(at, asked.turns)
        fresh = [turn for turn in new.turns if not self._is_known(turn)]
        self.losses += (Loss("copied_context", turn.place) for turn in fresh if turn.copied)
        self.losses += _of_new(asked.losses, fresh, new.beyond)
        self.losses += _differing(self.first, asked, scope.start.place)
        self._asked[scope.uuid] = asked
        for turn in fresh:
            yield msgspec.structs.replace(turn, timestamp=scope.start.moment.spelled)

    def answer(self, scope: Scope) -> Turn | None:
        """The turn of an answer, None for a call that failed."""
        assert scope.end is not None
        if has_failed(scope):
            error = scope.end.metadata.get("otel.status_description") or object_in(scope.end.data).get("error")
            self.failed.append({"call": scope.uuid, "error": error})
            self.losses.append(Loss("failed_call_omitted", scope.end.place))
            return None
        answered = answered_in(scope, self._options)
        self.losses += answered.losses
        if not scope.end.data:
            self.losses.append(Loss("conversation_unavailable", scope.end.place))
        if scope.uuid in self._ends:
            self._requests.answered(self._ends[scope.uuid])
        assert answered.turn is not None
        self._made.add(spoken(answered.turn))
        self._call_ids.update(call.call_id for call in answered.turn.calls if call.call_id)
        return self._whole(scope, answered.turn, self._asked.get(scope.uuid))

    def _is_known(self, turn: Turn) -> bool:
        """True for what was announced, and for what is here as an answer, in whatever other place it is told."""
        key = spoken(turn)
        if self._announced[key]:
            self._announced[key] -= 1
            return True
        answers = key in self._made or any(call.call_id in self._call_ids for call in turn.calls)
        return turn.role == Role.ASSISTANT and answers

    def _remember(self, at: int, turns: Sequence[Turn]) -> None:
        """Results that a request tells; the first telling counts, later ones may be cut to save room."""
        given = Counter[str]()
        for turn in turns:
            nth = {call.call_id: given[call.call_id] for call in turn.calls if call.call_id}
            given.update(nth.keys())
            for result in turn.results:
                if result.call_id:
                    key = result.call_id, nth.get(result.call_id, 0)
                    self.results.setdefault(key, ToldResult(at, result))

    def _whole(self, scope: Scope, turn: Turn, asked: Asked | None) -> Turn:
        """An answer with what its scope tells of the call; of several names of the model the runtime's counts."""
        start, end, call = scope.start, scope.end, turn.call or ModelCall()
        assert end is not None
        parameters = (asked.parameters if asked is not None else None) or {}
        names = (scope.profile.get("model_name"), call.model, parameters.get("model"), scope.name)
        model = next((name for name in names if isinstance(name, str) and name), None)
        effort = object_in(parameters.get("reasoning")).get("effort")
        return msgspec.structs.replace(
            turn,
            call=msgspec.structs.replace(
                call,
                call_id=scope.uuid,
                model=model,
                started_at=start.moment.seconds if start is not None else None,
                completed_at=end.moment.seconds,
                latency_ms=(end.moment.nanos - start.moment.nanos) / 1_000_000 if start is not None else None,
            ),
            timestamp=end.moment.spelled,
            reasoning_effort=effort if isinstance(effort, str | float) else None,
            extra=with_ours(
                {**(turn.extra or {}), **self._extras.of_scope(scope)},
                response_model=call.model if call.model != model else None,
            ),
        )


def _of_new(losses: Sequence[Loss], fresh: Sequence[Turn], beyond: str | None) -> Iterator[Loss]:
    """The losses of what a request tells for the first time; the rest was told with the requests before."""
    places = {turn.place for turn in fresh}
    for loss in losses:
        if loss.code in _LINKS:
            if beyond is not None and _message(loss.path) >= _message(beyond):
                yield loss
        elif any(loss.path == place or loss.path.startswith(f"{place}/") for place in places):
            yield loss


def _message(place: str) -> int:
    """Which message of its request a place is in."""
    found = _MESSAGE.findall(place)
    return int(found[-1]) if found else 0


def _differing(first: Asked | None, asked: Asked, place: str) -> Iterator[Loss]:
    """Parameters that differ from those of the first request have no place."""
    if first is not None:
        before, now = first.parameters or {}, asked.parameters or {}
        names = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        if names:
            yield Loss("request_fields_dropped", f"{place}/data", detail=", ".join(names))
