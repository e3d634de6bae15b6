"""Whatever a reader makes of its contract: a sound document, the same bytes each time, nothing lost untold (4.8)."""

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.atif.read import read_document
from ng_capture.contracts.episode import Content, Episode, Media, ModelCall, Turn
from ng_capture.contracts.rules import has_errors
from ng_capture.records.usage import UNKNOWN_USAGE
from tests.support.atif import faults_of, write_one
from tests.support.episodes import episodes

small = settings(max_examples=40, deadline=None)
DROPPED = frozenset({"media_omitted", "media_type_unknown"})
"""The losses of contents that a document has no way to undo: the data of an image."""


def told(content: Content | None) -> object:
    """A content without the media types, which the names of files give away."""
    if not isinstance(content, tuple):
        return content
    return [(part.kind, part.source) if isinstance(part, Media) else part for part in content]


def held(turn: Turn) -> dict[str, Any]:
    """What a document must keep of a turn; a call may learn what it used, a step when it was complete."""
    return {
        **{name: getattr(turn, name) for name in ("role", "thoughts", "calls", "copied", "model_calls", "item")},
        "effort": turn.reasoning_effort,
        "call": msgspec.structs.replace(turn.call or ModelCall(), usage=UNKNOWN_USAGE),
        "results": [msgspec.structs.replace(result, content=None) for result in turn.results],
        "extra": {key: value for key, value in (turn.extra or {}).items() if key != "ng_capture"},
    }


@small
@given(episodes())
def test_any_episode_is_a_sound_document_that_is_read_and_written_alike(episode: Episode) -> None:
    assert ATIF.writer is not None
    document, written = write_one(episode)
    assert not has_errors(faults_of(document))
    assert {loss.code for loss in written.losses} <= ATIF.writer.losses.keys()
    assert write_one(episode)[1].documents == written.documents
    again, second = write_one(read_document(document))
    assert json.dumps(again, sort_keys=True) == json.dumps(document, sort_keys=True)
    assert second.losses == ()


@small
@given(episodes(reward=st.none(), row=st.none()))
def test_what_no_loss_names_is_read_back(episode: Episode) -> None:
    document, written = write_one(episode)
    back = read_document(document)
    for at, (before, after) in enumerate(zip(episode.main.turns, back.main.turns, strict=True)):
        losses = {loss.code for loss in written.losses if f"{loss.path}/".startswith(f"/steps/{at}/")}
        assert held(after) == held(before)
        if before.timestamp is not None:
            assert after.timestamp == before.timestamp
        if before.call is not None and after.call is not None:
            assert before.call.usage in (after.call.usage, UNKNOWN_USAGE)
        if not losses & DROPPED:
            assert told(after.content) == told(before.content)
        if not losses & {*DROPPED, "parts_flattened"}:
            assert [told(each.content) for each in after.results] == [told(each.content) for each in before.results]
    assert back.main.agent == episode.main.agent
    assert (back.rollout_id, back.request, back.truncated) == (episode.rollout_id, episode.request, episode.truncated)
    assert len(back.omitted) == len(episode.omitted)
    assert len(back.main.subagents) == len(episode.main.subagents)
    assert (back.main.notes, back.main.continued) == (episode.main.notes, episode.main.continued)


@small
@given(episodes(omitted=st.just(())), st.data())
def test_a_prefix_of_a_conversation_is_a_prefix_of_its_steps(episode: Episode, data: st.DataObject) -> None:
    whole = msgspec.structs.replace(episode, main=msgspec.structs.replace(episode.main, totals=None))
    end = data.draw(st.integers(1, len(whole.main.turns)))
    main = msgspec.structs.replace(whole.main, turns=whole.main.turns[:end])
    steps = write_one(msgspec.structs.replace(whole, main=main))[0]["steps"]
    assert json.dumps(steps) == json.dumps(write_one(whole)[0]["steps"][:end])
