"""What a source is, is told by what stands in it; a file that nobody knows is refused or passed over, never guessed."""

import io
import json
import sys
import tracemalloc
from pathlib import Path

import pytest

from ng_capture.contracts.interface import Options, Read, Refused
from ng_capture.contracts.recognition import Recognition, head_of, recognise
from ng_capture.contracts.sources import Source
from ng_capture.errors import UsageError
from tests.support.contracts import atif, chat, row, write
from tests.support.raw_calls import chat_call, says, user, write_capture


def names(recognition: Recognition) -> list[tuple[str, str]]:
    """The last part of each source's path with its contract."""
    return [(Path(each.source.name).name, each.contract.name) for each in recognition.sources]


def rules(recognition: Recognition) -> list[str]:
    """The rules that the sources break where they are read."""
    outcomes = [one for each in recognition.sources for one in each.reader.read(each.source, Options())]
    return [fault.rule for outcome in outcomes for fault in outcome.faults]


def test_the_content_tells_the_contract_whatever_the_file_is_called(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{number}", each) for number, each in enumerate((atif(), row(), chat()))]
    assert [name for _, name in names(recognise([str(path) for path in paths], None))] == ["atif", "gym", "chat"]


def test_the_name_that_the_user_gives_wins_over_the_content(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", chat())
    assert names(recognise([str(path)], "gym")) == [("a.json", "gym")]


def test_a_name_that_is_no_contract_is_wrong_use_and_the_error_lists_them(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", atif())
    with pytest.raises(UsageError, match="html: no contract that is read") as raised:
        recognise([str(path)], "html")
    assert "atif" in str(raised.value.hint) and "sft" not in str(raised.value.hint)


def test_a_row_file_whose_first_line_is_damaged_is_told_by_the_next(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '{"_ng_rollout_id": ', row())
    assert names(recognise([str(path)], None)) == [("rows.jsonl", "gym")]


def test_a_document_over_several_lines_is_told_by_all_of_it(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", '{"schema_version": "ATIF-v1.7",', '"steps": []}')
    assert head_of(Source(str(path))).value == {"schema_version": "ATIF-v1.7", "steps": []}
    assert names(recognise([str(path)], None)) == [("t.json", "atif")]


@pytest.mark.parametrize(
    ("text", "rule", "message"),
    [
        ("", "unknown.json.syntax", "empty"),
        ('{"schema_version": "ATIF-v1.7", "st', "unknown.json.syntax", "Unterminated"),
        ("null", "unknown.contract", "neither object nor list"),
        ("[1]", "unknown.contract", "a list"),
        ("{}", "unknown.contract", "an empty object"),
        ('{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', "unknown.contract", "an object with a, b, c, d, e, ..."),
    ],
)
def test_a_file_that_nobody_knows_is_refused_with_what_it_is(
    text: str, rule: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    (known,) = recognise([str(path)], None).sources
    (outcome,) = known.reader.read(known.source, Options())
    (fault,) = outcome.faults
    assert isinstance(outcome, Refused) and known.contract.name == "unknown"
    assert (fault.rule, fault.severity) == (rule, "error") and message in fault.message


def test_of_a_folder_every_file_is_told_and_the_unknown_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "in" / "t10.json", atif())
    write(tmp_path / "in" / "t2.json", row())
    write(tmp_path / "in" / ".hidden.json", row())
    write(tmp_path / "notes.json", {"note": 1})
    write(tmp_path / "README.md", "no JSON at all")
    found = recognise([str(tmp_path)], None)
    assert names(found) == [("t2.json", "gym"), ("t10.json", "atif")]
    assert [Path(name).name for name in found.passed_over] == ["README.md", "notes.json"]


def test_a_damaged_json_file_of_a_folder_is_never_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "whole.json", atif())
    (tmp_path / "cut.json").write_text('{"schema_version": "ATIF-v1.7", "steps": [{')
    found = recognise([str(tmp_path)], None)
    assert names(found) == [("cut.json", "unknown"), ("whole.json", "atif")] and found.passed_over == ()
    assert rules(found) == ["unknown.json.syntax"]


def test_a_folder_without_anything_known_is_refused_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path / "README.md", "nothing")
    found = recognise([str(tmp_path)], None)
    assert names(found) == [(tmp_path.name, "unknown")] and rules(found) == ["unknown.contract"]


def test_a_capture_directory_inside_a_folder_is_one_source(tmp_path: Path) -> None:
    write_capture(tmp_path / "runs" / "1", "r-1", [chat_call("1111aaaa", [user("hi")], says("ok"))])
    write(tmp_path / "runs" / "rows.jsonl", row())
    found = recognise([str(tmp_path)], None)
    assert names(found) == [("1", "capture"), ("rows.jsonl", "gym")]
    outcomes = [one for each in found.sources for one in each.reader.read(each.source, Options())]
    assert [isinstance(each, Read) for each in outcomes] == [True, True]


def test_a_folder_that_is_said_to_be_of_a_contract_of_files_gives_its_files(tmp_path: Path) -> None:
    write(tmp_path / "a.json", atif())
    write(tmp_path / "b.json", {"note": 1})
    assert names(recognise([str(tmp_path)], "atif")) == [("a.json", "atif"), ("b.json", "atif")]


def test_what_is_named_by_itself_and_by_its_folder_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "in" / "rows.jsonl", row())
    given = [str(path), str(tmp_path / "in"), f"{tmp_path}/in/../in/rows.jsonl"]
    assert [each.contract.name for each in recognise(given, None).sources] == ["gym"]


def test_standard_input_is_told_by_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b'{"_ng_rollout_id": "1-0", "response": {}}\n')

    monkeypatch.setattr(sys, "stdin", Stdin())
    found = recognise(["-"], None)
    assert names(found) == [("standard input", "gym")] and found.paths == []


def test_what_was_looked_at_to_know_a_folder_is_not_kept(tmp_path: Path) -> None:
    for number in range(20):
        text = json.dumps(atif("x" * 100_000), indent=1)
        (tmp_path / f"{number}.json").write_text(text)
    tracemalloc.start()
    try:
        found = recognise([str(tmp_path)], None)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.sources) == 20 and held < 1_000_000


def test_a_path_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        recognise([str(tmp_path / "none")], None)
