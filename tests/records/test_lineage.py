"""Parents by the conversation that a request resends (capture-files.md 3, cases L01 to L11)."""

from typing import Any

import pytest

from ng_capture.records.lineage import Lineage, Parent
from ng_capture.records.token_record import TokenRecord, stamped

Q, MORE, AGAIN = ({"role": "user", "content": text} for text in ("q", "more", "again"))
OTHER = {"role": "user", "content": "OTHER"}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


ONE, TWO = said("one"), said("two")


def call(call_id: str, asked: list[Any], answer: Any, generation: int = 3, **fields: Any) -> TokenRecord:
    record = TokenRecord(
        rollout_id="r-1",
        model_call_id=call_id,
        prompt_token_ids=[1, 2],
        generation_token_ids=[generation],
        generation_log_probs=[-0.5],
        output_items=[answer],
    )
    record = stamped(record, asked)
    return type(record)(**{name: getattr(record, name) for name in record.__struct_fields__} | fields)


A, B = call("a", [Q], ONE), call("b", [Q, ONE, MORE], TWO)


@pytest.mark.parametrize(
    ("records", "request_items", "parent"),
    [
        pytest.param([A], [Q], Parent("root"), id="L01"),
        pytest.param([A], [Q, ONE, MORE], Parent("resolved", "a"), id="L02"),
        pytest.param([A, B], [Q, ONE, MORE, TWO, AGAIN], Parent("resolved", "b"), id="L03"),
        pytest.param([A], [OTHER, ONE], Parent("unresolved", reason="no_match"), id="L04"),
        pytest.param([A], [Q, said("uno")], Parent("unresolved", reason="no_match"), id="L05"),
        pytest.param(
            [A, call("a2", [Q], ONE, generation=4)], [Q, ONE], Parent("unresolved", reason="ambiguous"), id="L06"
        ),
        pytest.param([call("a9", [Q], ONE), A], [Q, ONE], Parent("resolved", "a"), id="L07"),
        pytest.param([A], [Q, {"type": "reasoning", "summary": []}, ONE], Parent("resolved", "a"), id="L08"),
        pytest.param(
            [call("a", [Q], ONE, fingerprint_version=1)], [Q, ONE], Parent("unresolved", reason="no_match"), id="L09"
        ),
        pytest.param(
            [call("a", [Q], ONE, continuation_fingerprint="")],
            [Q, ONE],
            Parent("unresolved", reason="no_match"),
            id="L10",
        ),
        pytest.param([call("a", [Q, MORE, AGAIN], ONE)], [Q, ONE], Parent("unresolved", reason="no_match"), id="L11"),
        pytest.param([A, A], [Q, ONE], Parent("resolved", "a"), id="the same call again"),
        pytest.param(
            [call("a", [Q], ONE, digest=""), call("b", [Q], ONE, digest="")],
            [Q, ONE],
            Parent("unresolved", reason="ambiguous"),
            id="alike without a digest",
        ),
        pytest.param([A], [Q, said(5)], Parent("unresolved", reason="lookup_error"), id="no fingerprint"),  # type: ignore[arg-type]
        pytest.param(
            [A], [{"role": "user", "content": 5}, ONE], Parent("unresolved", reason="lookup_error"), id="no digest"
        ),
    ],
)
def test_a_parent_is_the_one_that_the_reference_finds(
    records: list[TokenRecord], request_items: list[Any], parent: Parent
) -> None:
    lineage = Lineage()
    for record in records:
        lineage.add(record)
    assert lineage.parent_of(request_items) == parent
