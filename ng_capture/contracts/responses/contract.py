"""The contract `responses`."""

from ng_capture.contracts.episode import Episode
from ng_capture.contracts.gym.left_out import left_out
from ng_capture.contracts.gym.losses import READ, ROW_GIVES, WRITTEN
from ng_capture.contracts.gym.native import pair_of
from ng_capture.contracts.interface import Contract, Feature, Options, Reader, Writer, Written
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.responses.reading import CONTRACT, read, recognises
from ng_capture.records.json_text import encode_json


def write(episode: Episode, options: Options) -> Written:
    """A request and its response."""
    pair = pair_of(episode, options)
    losses = [*left_out(episode), *pair.losses]
    if episode.reward is not None:
        losses.append(Loss("reward_dropped"))
    sides = {"request": pair.request, "response": pair.response}
    told = {name: side for name, side in sides.items() if side is not None}
    return Written((encode_json(told),), tuple(losses))


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
    writer=Writer(write=write, suffix=".responses.json", losses=WRITTEN | {"reward_dropped": Feature.REWARD}),
)
