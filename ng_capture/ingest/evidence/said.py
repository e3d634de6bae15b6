"""What one answer says, in any dialect."""

from ng_capture.ingest.evidence.answers import Answer
from ng_capture.ingest.messages import ASSISTANT, Message, answer_message
from ng_capture.records.json_text import printable

_TEXTS = ("text", "generated_text", "content")


def said_in(answer: Answer) -> Message | None:
    """The answer as a turn, None where nothing of the kind was served."""
    alone = answer.response if answer.choice is answer.response else {"choices": [answer.choice]}
    message = answer_message(alone)
    if message is not None:
        return message
    text = next((value for key in _TEXTS if isinstance(value := answer.choice.get(key), str)), None)
    return None if text is None else Message(ASSISTANT, printable(text))
