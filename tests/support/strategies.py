"""Random captures: healthy rollouts of any shape, and faults that say what they touch.

    @given(captures("call whole end"))  # healthy, or with up to three faults of these kinds
    @given(captures(""))                # healthy only
    @given(captures("", always=("torn tail",)))
    def test_claim(capture: Capture) -> None:
        write_files(directory, capture.files())

The faults of each kind are in `tests.support.faults`, what a capture tells of itself in `tests.support.capture`.
"""

from hypothesis import strategies as st

from tests.support.capture import Capture
from tests.support.faults import ALL_FAULTS, FAULTS, Draw
from tests.support.forge import Call, Forge, Row

ids = st.lists(st.integers(1, 9) | st.sampled_from([0, 151_643, 2**31 - 1]), max_size=4)
some_ids = st.lists(st.integers(1, 9), min_size=1, max_size=4)

HEALTHY = ("then", "then", "then", "retry", "root", "unconditional")
REWRITTEN = ("rewritten", "unresolved")


@st.composite
def forges(draw: Draw, max_calls: int = 7, kinds: tuple[str, ...] = HEALTHY) -> Forge:
    """A rollout: continuations, branches, retries, sub-agents and compactions, calls that generated nothing."""
    forge = Forge(delta=draw(st.booleans()))
    forge.root(draw(some_ids), draw(ids))
    for _ in range(draw(st.integers(0, max_calls - 1))):
        at = forge.calls[-1 - draw(st.integers(0, max_calls)) % len(forge.calls)]
        kind = draw(st.sampled_from(kinds))
        if kind == "then":
            at.then(draw(ids), draw(ids))
        elif kind == "retry":
            at.retry(draw(ids if at.prompt else some_ids))
        elif kind == "rewritten":
            kept = draw(st.integers(0, max(len(at.full) - 1, 0)))
            at.broken([*at.full[:kept], *draw(some_ids)], draw(ids))
        elif kind == "unresolved":
            forge.unresolved(draw(some_ids), draw(ids))
        else:
            forge.root([] if kind == "unconditional" else draw(some_ids), draw(some_ids))
    return forge


@st.composite
def captures(
    draw: Draw, kinds: str, *, max_faults: int = 3, named: bool | None = None, always: tuple[str, ...] = ()
) -> Capture:
    """A capture with faults of these kinds, and `always` those of these names.

    With faults of calls, history may be rewritten, too: calls that do not extend the parent that they name. `named`
    tells whether a row names a scored call (at random if None).
    """
    forge = draw(forges(kinds=HEALTHY + REWRITTEN if "call" in kinds else HEALTHY))
    if named and not any(call.generation for call in forge.calls):
        forge.root(draw(some_ids), draw(some_ids))
    answers = [call for call in forge.calls if call.generation]
    capture = Capture(forge, touched={call.id for call in forge.calls if not call.joined})
    if answers and (draw(st.booleans()) if named is None else named):
        capture.scored = draw(st.sampled_from(answers))
        capture.row = draw(st.sampled_from(_rows(capture.scored)))
    # what is kept beside the records: none of it where another writer was at work
    keeps = draw(st.sets(st.sampled_from(["state", "intents", "exchanges"])))
    if "exchanges" in keeps:
        capture.exchanges = [call.raw() for call in forge.calls]
    names = sorted(name for kind in kinds.split() for name in FAULTS[kind])
    capture.done = [*always, *draw(st.lists(st.sampled_from(names), max_size=max_faults) if names else st.just([]))]
    chosen = [ALL_FAULTS[name] for name in capture.done]
    for fault in chosen:
        if not fault.of_disk:
            fault.apply(draw, capture)
    capture.lines = [(call.id, call.line()) for call in forge.calls]
    if "state" in keeps:
        capture.state = forge.state()
    if "intents" in keeps:
        capture.intents = [call.id for call in forge.calls]
    for fault in chosen:
        if fault.of_disk:
            fault.apply(draw, capture)
    return capture


@st.composite
def chains(draw: Draw) -> Capture:
    """A healthy rollout that is one chain: every retry is settled by what goes on; its last call is scored, or none."""
    forge = Forge(delta=draw(st.booleans()))
    call = forge.root(draw(some_ids), draw(ids))
    for _ in range(draw(st.integers(0, 4))):
        answers = draw(st.lists(ids, max_size=2))
        for answer in answers:
            call = call.retry(answer)
        # an answer is kept by what extends it, and nothing extends one that is empty
        call = call.retry(draw(some_ids)) if answers else call
        call = call.then(draw(ids), draw(ids))
    last = call.then(draw(ids), draw(some_ids))
    capture = Capture(forge, lines=[(call.id, call.line()) for call in forge.calls])
    if draw(st.booleans()):
        capture.scored, capture.row = last, draw(st.sampled_from([None, *_rows(last)]))
    return capture


def _rows(scored: Call) -> list[Row]:
    """The ways in which a finished row can name its scored call."""
    forge = scored.forge
    return [
        forge.row(_ng_terminal_model_call_id=scored.id),
        forge.row(scored),
        forge.row(terminal_response_id=scored.response_id),
        forge.row(scored, _ng_terminal_model_call_id=scored.id),
    ]
