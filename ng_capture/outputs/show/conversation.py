"""The conversation of a rollout, in the order in which it was held, each turn once."""

from collections.abc import Iterator

from ng_capture.ingest.messages import Message
from ng_capture.outputs.explain.rollout import ShownRollout
from ng_capture.tokenizer import Tokenizer


def conversation(rollout: ShownRollout, tokenizer: Tokenizer | None) -> Iterator[Message]:
    """The turns of the delivered chain, of a masked rollout those of its main chain.

    What was asked is known by the raw calls; without them the tokens between two answers stand for it, as text where a
    tokenizer is known.
    """
    judgement = rollout.judgement
    made = sorted(judgement.analysis.calls.values(), key=lambda call: (call.fields.created_at, call.id))
    calls = judgement.rows[0].calls if judgement.rows else judgement.main_chain or tuple(call.id for call in made)
    shown, place = 0, 0
    for call_id in calls:
        call, exchange = judgement.analysis.calls[call_id], rollout.exchanges.get(call_id)
        if exchange is not None and exchange.asked:
            yield from exchange.asked[shown:]
            shown = len(exchange.conversation)
        elif call.prompt is not None:
            added = call.prompt.values()[place:]
            text = _counted(len(added)) if tokenizer is None else tokenizer.text(added)
            if len(added):
                yield Message("prompt", text)
        answer = rollout.answer(call)
        if answer is not None:
            yield answer
        elif call.full is not None and call.prompt is not None:
            generated = call.full.values()[len(call.prompt) :]
            text = _counted(len(generated)) if tokenizer is None else tokenizer.text(generated)
            yield Message("assistant", text)
        place = len(call.full) if call.full is not None else place


def _counted(tokens: int) -> str:
    return f"[{tokens:,} token{'' if tokens == 1 else 's'}]"
