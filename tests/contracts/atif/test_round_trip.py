"""What ATIF says comes back as it was said: read into an episode and written again."""

import json

from hypothesis import given

from ng_capture.contracts.atif.read import read_document
from tests.support.atif import Doc, documents, errors, write_one


@given(documents())
def test_a_valid_document_of_v1_7_comes_back_equal(value: Doc) -> None:
    assert errors(value) == []
    back, written = write_one(read_document(value))
    assert back == value
    assert written.losses == ()


@given(documents())
def test_the_same_document_gives_the_same_bytes(value: Doc) -> None:
    again = json.loads(json.dumps(value, sort_keys=True))
    assert write_one(read_document(value))[1] == write_one(read_document(value))[1]
    assert write_one(read_document(again))[0] == write_one(read_document(value))[0]
