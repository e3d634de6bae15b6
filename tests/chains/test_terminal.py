"""Which call was scored."""

from pathlib import Path
from typing import Any

import pytest

from ng_capture.verdicts.judge import Judgement
from ng_capture.verdicts.judging import Policy
from tests.support.forge import Call, Forge
from tests.support.judging import judged


def message(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, **more}


@pytest.fixture
def forge() -> Forge:
    """A chain of two calls with a branch: only a named terminal makes it trainable."""
    made = Forge()
    first = made.root([1], [2], id="a")
    first.then([3], [4], id="b")
    first.then([5], [6], id="s")
    return made


def with_response(forge: Forge, directory: Path, response: Any, **row: Any) -> Judgement:
    forge.write(directory)
    return judged(directory, forge.row(None, response=response, **row))


def named(judgement: Judgement) -> tuple[str | None, str | None]:
    return judgement.analysis.attribution.call, judgement.analysis.attribution.method


def test_item_ids_speak_where_every_other_witness_is_silent(forge: Forge, tmp_path: Path) -> None:
    answer: Call = forge.calls[1]
    answer.fields["output_items"] = [message([{"type": "output_text", "text": "as sent"}], id="msg_1")]
    response = {"output": [message("as the harness changed it", id="msg_1"), {"type": "function_call_output"}]}
    judgement = with_response(forge, tmp_path, response)
    assert named(judgement) == ("b", "item_ids")
    assert (judgement.verdict, judgement.deviation) == ("trainable", "terminal_evidence")


def test_item_ids_are_not_asked_where_content_names_a_call(forge: Forge, tmp_path: Path) -> None:
    response = {"output": [{**forge.calls[2].output[-1], "id": f"msg_{forge.calls[1].id}"}]}
    assert named(with_response(forge, tmp_path, response)) == ("s", "content_output")


@pytest.mark.parametrize("items", [[message("x")], [message("x", id="nobody's")]])
def test_a_response_that_nothing_explains_masks(forge: Forge, tmp_path: Path, items: list[Any]) -> None:
    judgement = with_response(forge, tmp_path, {"output": items})
    assert judgement.reasons[-1] == "terminal_not_captured"


def test_an_output_item_that_is_no_object_is_passed_over(forge: Forge, tmp_path: Path) -> None:
    assert named(with_response(forge, tmp_path, {"output": [7, *forge.calls[1].output]})) == ("b", "content_output")


def test_a_record_that_cannot_be_fingerprinted_is_no_witness(forge: Forge, tmp_path: Path) -> None:
    forge.calls[2].fields["output_items"] = [{"role": "assistant", "content": [5]}]
    assert named(with_response(forge, tmp_path, {"output": forge.calls[1].output})) == ("b", "content_output")


def test_answers_without_digests_collapse_by_their_ids(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a")
    bare = {"digest": None, "cum_len": None, "response_id": "same"}
    first.then([3], [4], id="c", **bare)
    first.then([3], [4], id="b", **bare)
    judgement = with_response(forge, tmp_path, {"id": "same"})
    assert named(judgement) == ("b", "response_id")


def test_deltas_without_a_parent_collapse_by_what_is_stored(tmp_path: Path) -> None:
    forge = Forge(delta=True)
    first = forge.root([1], [2], id="gone")
    for name in ("c", "b"):
        first.then([3], [4], id=name, digest=None, cum_len=None, response_id="same")
    forge.calls.remove(first)
    assert named(with_response(forge, tmp_path, {"id": "same"})) == ("b", "response_id")


def test_an_unexplained_response_is_only_told_where_no_call_is_missing(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1], [2], id="a").then([3], [4], id="b")
    judgement = with_response(forge, tmp_path, {"id": "minted", "output": [message("by the harness")]})
    assert judgement.verdict == "trainable"
    assert "terminal_unconfirmed" in {finding.reason for finding in judgement.findings}
    forge.write(tmp_path, intents=False)
    (tmp_path / "r-1.tokens.intents").unlink()
    assert judged(tmp_path, forge.row(None, response={"id": "minted"})).reasons == ("terminal_not_captured",)


def test_several_possible_answers_mask_where_the_chain_ends_in_none(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a", response_id="same")
    second = first.then([3], [4], id="b", response_id="same")
    second.then([5], [6], id="c")
    assert with_response(forge, tmp_path, {"id": "same"}).reasons == ("terminal_ambiguous",)


@pytest.mark.parametrize("policy", [Policy.TERMINAL, Policy.ALL])
def test_a_scored_call_that_generated_nothing_masks(tmp_path: Path, policy: Policy) -> None:
    forge = Forge()
    last = forge.root([1], [2], id="a").then([3], [], id="e")
    forge.write(tmp_path)
    judgement = judged(tmp_path, forge.row(last), policy)
    assert judgement.reasons == ("terminal_not_captured",)
    assert "it generated nothing" in judgement.findings[-1].message


def test_policy_all_gives_nothing_where_the_scored_call_is_in_doubt(forge: Forge, tmp_path: Path) -> None:
    forge.calls[1].fields["digest"] = "0" * 64
    forge.write(tmp_path)
    assert judged(tmp_path, forge.row(forge.calls[1]), Policy.ALL).reasons == ("digest_mismatch",)


@pytest.mark.parametrize(
    ("item", "note"),
    [
        (message([5]), "response_output_unfingerprintable"),
        ({"type": "function_call_output", "output": "x"}, "no_model_authored_output"),
    ],
)
def test_a_response_that_cannot_be_compared_says_nothing(tmp_path: Path, item: dict[str, Any], note: str) -> None:
    """It confirms no call, and contradicts none: the one chain stays what it was."""
    forge = Forge()
    forge.root([1], [2], id="a").then([3], [4], id="b")
    judgement = with_response(forge, tmp_path, {"output": [item]})
    assert named(judgement) == (None, None) and judgement.verdict == "trainable"
    assert judgement.analysis.attribution.reason == f"response_has_no_id,{note}"


def test_a_declared_response_that_no_record_has_masks(forge: Forge, tmp_path: Path) -> None:
    """Also where the response itself names a call."""
    judgement = with_response(forge, tmp_path, {"id": "resp_b"}, terminal_response_id="resp_gone")
    assert judgement.reasons[-1] == "terminal_not_captured"
    assert any("resp_gone" in finding.message for finding in judgement.findings)


def test_a_declared_response_that_two_records_have_masks(forge: Forge, tmp_path: Path) -> None:
    for call in forge.calls[1:]:
        call.fields["response_id"] = "same"
    judgement = with_response(forge, tmp_path, None, terminal_response_id="same")
    assert judgement.reasons[-1] == "terminal_ambiguous"
    assert ("b", "s") in {finding.calls for finding in judgement.findings if finding.reason == "terminal_ambiguous"}
