"""The contract `responses`."""

from collections.abc import Iterator

from ng_capture.contracts.episode import Episode
from ng_capture.contracts.gym.envelope import envelope_of
from ng_capture.contracts.gym.left_out import left_out, unnamed
from ng_capture.contracts.gym.losses import READ, ROW_GIVES, WRITTEN
from ng_capture.contracts.gym.native import pair_of
from ng_capture.contracts.interface import Contract, Feature, Options, Reader, Writer, Written
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.responses.reading import CONTRACT, read, recognises
from ng_capture.contracts.unplaced import row_losses
from ng_capture.records.json_text import encode_json


def write(episode: Episode, options: Options) -> Written:
    """A request and its response."""
    pair = pair_of(episode, options)
    own = episode.contract in ("gym", CONTRACT)
    # nobody answered: an envelope without output would be made up
    answered = pair.response is not None and (pair.response["output"] or envelope_of(episode, own) is not None)
    sides = {"request": pair.request, "response": pair.response if answered else None}
    told = {name: side for name, side in sides.items() if side is not None}
    return Written((encode_json(told),), (*pair.losses, *_left_out(episode)))


def _left_out(episode: Episode) -> Iterator[Loss]:
    """What a row holds besides its request and response, and what a row has no place for either."""
    yield from left_out(episode)
    thread = episode.main
    if thread.subagents:
        yield Loss("subagent_dropped", count=len(thread.subagents))
    if episode.reward is not None:
        yield Loss("reward_dropped")
    yield from row_losses(episode)
    yield from unnamed(episode)


RESPONSES = Contract(
    name=CONTRACT,
    title="OpenAI Responses: a request, a response, both as `{request, response}`, or a list of items",
    authority="what was asked and answered, item by item",
    join_key="`response.id`",
    reader=Reader(
        recognises=recognises,
        read=read,
        gives=ROW_GIVES - {Feature.REWARD, Feature.ROW, Feature.SUBAGENTS, Feature.TIMES},
        losses=READ | {"stream_rebuilt"},
    ),
    writer=Writer(
        write=write,
        suffix=".responses.json",
        losses=WRITTEN | {"reward_dropped": Feature.REWARD, "row_fields_dropped": Feature.ROW},
    ),
)
