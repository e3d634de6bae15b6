"""`ng-capture convert` as a user runs it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ng_capture.outputs.shapes import SHAPES
from tests.support.command import COMMAND, run, strict_json
from tests.support.contracts import atif, chat, row, write
from tests.support.loading import loaded_by
from tests.support.raw_calls import chat_call, says, user, write_capture
from tests.support.terminal_text import ALL_HOSTILE, acting

HEAVY = {"polars", "pyarrow", "transformers", "numpy", "tokenizers", "pydantic"}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def with_image() -> dict[str, Any]:
    """A row that asks about an image inside it."""
    parts = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": PIXEL}]
    return row(responses_create_params={"input": [{"role": "user", "content": parts}]})


def in_folder(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# Where it goes


def test_a_document_goes_to_standard_output_and_the_summary_beside_it(tmp_path: Path) -> None:
    done = run("convert", write(tmp_path / "r.jsonl", row()), "--to", "atif")
    assert done.code == 0 and strict_json(done.out)["schema_version"] == "ATIF-v1.7"
    assert done.err.startswith("1 document written, 0 refused.\n")
    assert run("convert", tmp_path / "r.jsonl", "--to", "atif", "-q").err == ""


def test_a_file_holds_a_row_a_line_and_a_folder_a_file_each(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row("7-0"), row("7-1"))
    assert run("convert", source, "--to", "sft", "-o", tmp_path / "out.jsonl").code == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    assert run("convert", source, "--to", "atif", "-o", f"{tmp_path}/new/").code == 0
    assert set(in_folder(tmp_path / "new")) == {"7-0.atif.json", "7-1.atif.json"}


def test_a_loss_report_that_cannot_be_placed_is_wrong_use_before_anything_is_written(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row())
    done = run("convert", source, "--to", "atif", "-o", f"{tmp_path}/new/", "--loss-report", tmp_path / "no" / "l.json")
    assert done.code == 2 and "no: no such directory" in done.err
    assert in_folder(tmp_path) == {"r.jsonl": source.read_bytes()}


def test_where_nothing_is_left_to_convert_that_is_told(tmp_path: Path) -> None:
    done = run("convert", write(tmp_path / "r.jsonl", row("7-0")), "--to", "atif", "--include", "8-*")
    assert done.code == 1 and "--include and --exclude leave none" in done.err


def test_a_name_that_promises_compression_is_wrong_use(tmp_path: Path) -> None:
    done = run("convert", write(tmp_path / "r.jsonl", row()), "--to", "sft", "-o", tmp_path / "out.jsonl.gz")
    assert done.code == 2 and f"hint: -o {tmp_path}/out.jsonl, or -o - and a pipe" in done.err
    assert not (tmp_path / "out.jsonl.gz").exists()


def test_a_document_without_a_raw_call_makes_no_capture_and_says_so(tmp_path: Path) -> None:
    done = run("convert", write(tmp_path / "t.json", atif()), "--to", "capture", "-o", f"{tmp_path}/new/")
    assert done.code == 1 and "t.json: no raw call is in it" in done.err


def test_a_file_that_holds_one_document_is_not_given_two(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row("7-0"), row("7-1"))
    done = run("convert", source, "--to", "atif", "-o", tmp_path / "t.json")
    assert done.code == 2 and "holds one document, and there are more" in done.err
    assert f"hint: -o {tmp_path}/ for a file each" in done.err and not (tmp_path / "t.json").exists()


def test_trajectories_that_name_each_other_by_their_files_keep_their_names(tmp_path: Path) -> None:
    write(tmp_path / "in" / "t.json", atif(continued_trajectory_ref="t.cont-1.json"))
    write(tmp_path / "in" / "t.cont-1.json", atif())
    assert run("convert", tmp_path / "in", "--to", "atif", "-o", f"{tmp_path}/new/").code == 0
    assert set(in_folder(tmp_path / "new")) == {"t.json", "t.cont-1.json"}
    assert run("validate", tmp_path / "new").out == ""


def test_documents_of_one_name_get_files_of_their_own(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row("a"), row("A"), row("a"))
    assert run("convert", source, "--to", "atif", "-o", f"{tmp_path}/new/").code == 0
    assert set(in_folder(tmp_path / "new")) == {"a.atif.json", "A-2.atif.json", "a-3.atif.json"}


def test_images_are_put_where_that_is_asked_for_and_named_by_the_document(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", with_image())
    done = run("convert", source, "--to", "atif", "-o", "new/t.json", "--media-dir", "media", cwd=tmp_path)
    assert done.code == 0 and "media_omitted" not in done.err
    (name,) = (name for name in in_folder(tmp_path / "new") if name != "t.json")
    assert name.startswith("media/") and name in (tmp_path / "new" / "t.json").read_text()
    assert run("validate", tmp_path / "new" / "t.json").code == 0


def test_a_source_is_never_replaced(tmp_path: Path) -> None:
    source = write(tmp_path / "7-0.atif.json", atif(session_id="7-0"))
    before = source.read_bytes()
    for place in (source, f"{tmp_path}/"):
        done = run("convert", source, "--to", "atif", "-o", place)
        assert done.code == 2 and "would replace a source" in done.err
    assert source.read_bytes() == before
    done = run("convert", source, "--to", "gym", "-o", tmp_path / "o", "--loss-report", source)
    assert done.code == 2 and "the loss report would replace a source" in done.err
    done = run("convert", source, "--to", "gym", "-o", tmp_path / "o", "--loss-report", tmp_path / "o")
    assert done.code == 2 and "the loss report would replace the output" in done.err


def test_a_capture_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    call = chat_call("1111aaaa", [user("hi")], says("ok"), prompt=[1], generation=[2])
    write_capture(tmp_path / "raw", "7-0", [call])
    kept = write(tmp_path / "store" / "7-0.tokens.jsonl", "kept")
    done = run("convert", tmp_path / "raw", "--to", "tokens", "-o", f"{tmp_path}/store/")
    assert done.code == 2 and f"{kept}: a capture is there, and would be replaced" in done.err
    assert "hint: ng-capture ingest adds to a capture directory" in done.err
    assert kept.read_bytes() == b"kept\n"
    assert run("convert", tmp_path / "raw", "--to", "tokens", "-o", f"{tmp_path}/new/").code == 0
    assert run("verify", tmp_path / "new").code == 0


def test_a_folder_that_is_not_there_is_wrong_use_with_the_command_that_makes_it(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row())
    done = run("convert", source, "--to", "atif", "-o", tmp_path / "none" / "t.json")
    assert done.code == 2 and f"hint: mkdir -p {tmp_path}/none" in done.err


# What is lost


def test_every_loss_is_reported_in_the_published_shape(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row("7-0", grade="A"), "{torn", with_image())
    report = tmp_path / "losses.json"
    done = run("convert", source, "--to", "atif", "-o", f"{tmp_path}/new/", "--loss-report", report)
    assert done.code == 1 and f"{source}:2: gym.json.syntax: " in done.err
    SHAPES["loss-report"].model_validate_json(report.read_bytes())
    told = strict_json(report.read_text())
    assert [each["output"] for each in told["documents"]] == [
        f"{tmp_path}/new/7-0.atif.json",
        None,
        f"{tmp_path}/new/7-0-2.atif.json",
    ]
    assert told["losses"]["media_omitted"] == 1 and "row_fields_dropped" in told["losses"]
    (image,) = (loss for loss in told["documents"][2]["losses"] if loss["code"] == "media_omitted")
    assert image["severity"] == "dropped" and image["path"].startswith("/")
    total = sum(loss["count"] for each in told["documents"] for loss in each["losses"])
    assert total == sum(told["losses"].values())


def test_the_report_goes_to_standard_output_where_the_documents_do_not(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row(grade="A"))
    done = run("convert", source, "--to", "sft", "-o", "o.jsonl", "--loss-report", "-", cwd=tmp_path)
    assert done.code == 0 and strict_json(done.out)["losses"]["row_fields_dropped"] == 1
    assert {path.name for path in tmp_path.iterdir()} == {"r.jsonl", "o.jsonl"}
    done = run("convert", source, "--to", "sft", "--loss-report", "-", cwd=tmp_path)
    assert (done.code, done.out) == (2, "") and "both go to standard output" in done.err


def test_a_loss_is_told_with_the_line_on_which_it_happened_first(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row("7-0"), row("7-1", grade="A"))
    lines = [line for line in run("convert", source, "--to", "sft").err.splitlines() if "row_fields_dropped" in line]
    assert len(lines) == 1 and f"1 in 1 document, first {source}:2" in lines[0]


def test_losses_alone_are_no_failure_but_under_strict_they_refuse(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row(grade="A"))
    assert run("convert", source, "--to", "sft").code == 0
    done = run("convert", source, "--to", "sft", "--strict", "-o", tmp_path / "o")
    assert done.code == 1 and "row_fields_dropped" in done.err and "without --strict it is written" in done.err
    assert not (tmp_path / "o").exists()


def test_the_summary_names_what_was_lost_the_worst_first(tmp_path: Path) -> None:
    done = run("convert", write(tmp_path / "r.jsonl", with_image()), "--to", "atif")
    severities = [line.split()[0] for line in done.err.splitlines() if line.startswith("  ")]
    order = ["dropped", "synthesised", "degraded", "note"]
    assert severities == sorted(severities, key=order.index) and {"dropped", "synthesised"} <= set(severities)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row("7-0"), with_image())
    for name in ("one", "two"):
        assert run("convert", source, "--to", "atif", "-o", f"{tmp_path}/{name}/", "--media-dir", "m").code == 0
    assert in_folder(tmp_path / "one") == in_folder(tmp_path / "two")


# What is read


def test_what_nobody_knows_is_a_finding_with_a_hint(tmp_path: Path) -> None:
    done = run("convert", write(tmp_path / "x.json", {"a": 1}), "--to", "atif")
    assert (done.code, done.out) == (1, "")
    assert "x.json: unknown.contract: of no contract that is known: an object with a" in done.err
    assert "hint: --from NAME says what it is" in done.err


def test_a_folder_of_many_kinds_is_converted_as_a_whole(tmp_path: Path) -> None:
    write_capture(tmp_path / "in" / "runs", "r-1", [chat_call("1111aaaa", [user("hi")], says("ok"))])
    write(tmp_path / "in" / "rows.jsonl", row("7-0"))
    write(tmp_path / "in" / "a.json", atif())
    write(tmp_path / "in" / "c.json", chat())
    write(tmp_path / "in" / "README.md", "notes")
    done = run("convert", tmp_path / "in", "--to", "sft")
    assert done.code == 0 and len(done.rows) == 4
    assert done.err.startswith(f"1 file that nothing is known of: {tmp_path}/in/README.md\n4 documents written")


def test_only_the_rollouts_that_are_asked_for_are_written(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row("7-0"), row("8-0"))
    done = run("convert", source, "--to", "sft", "--include", "8-*")
    assert done.code == 0 and len(done.rows) == 1


def test_of_a_capture_directory_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    write_capture(tmp_path, "7-0", [chat_call("1111aaaa", [user("hi")], says("ok"))])
    (tmp_path / "8-0.capture.jsonl").write_bytes(b"{broken")
    done = run("convert", tmp_path, "--to", "sft", "--include", "7-0")
    assert (done.code, len(done.rows)) == (0, 1) and "8-0" not in done.err


def test_standard_input_is_a_source(tmp_path: Path) -> None:
    data = json.dumps(row()).encode()
    done = subprocess.run([COMMAND, "convert", "-", "--to", "atif", "-q"], input=data, capture_output=True, check=False)
    assert done.returncode == 0 and strict_json(done.stdout)["steps"][1]["message"] == "ok"


def test_a_source_that_must_not_be_read_is_3_and_the_others_go_on(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", row("7-0"))
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    done = run("convert", tmp_path / "a.jsonl", tmp_path / "loop.json", "--to", "sft")
    assert done.code in (2, 3) and "Traceback" not in done.err


def test_nothing_that_a_document_holds_can_act_on_a_terminal(tmp_path: Path) -> None:
    hostile = {**row(), ALL_HOSTILE: ALL_HOSTILE, "response": {"output": [{"type": ALL_HOSTILE}]}}
    source = write(tmp_path / "a\x1b[1m.jsonl", hostile, {"_ng_rollout_id": ALL_HOSTILE})
    done = run("convert", source, "--to", "atif", "-o", f"{tmp_path}/new/")
    assert not acting(done.err) and "Traceback" not in done.err


# The matrix


def test_the_list_names_every_pair_with_its_losses() -> None:
    pairs = run("convert", "--list", "--json").rows
    assert pairs == run("contracts", "--json").rows
    known = {(each["from"], each["to"]): each["may_report"] for each in pairs}
    assert "tools_dropped" in known["gym", "tokens"] and ("sft", "atif") not in known
    text = run("convert", "--list").out
    assert all(f"{source} -> {target}\n" in text for source, target in known)


def test_the_list_is_of_the_pair_that_is_asked_for() -> None:
    done = run("convert", "--list", "--from", "gym", "--to", "sft")
    assert done.out.startswith("gym -> sft\n  dropped ") and done.out.count("->") == 1
    assert all(len(line) <= 100 for line in done.out.splitlines())
    assert run("convert", "--list", "--to", "html").code == 2


def test_the_map_is_printed() -> None:
    assert run("contracts").out.startswith("# The map of contracts\n")


def test_nothing_slow_is_loaded(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", row())
    assert not loaded_by("convert", source, "--to", "atif", "-o", f"{tmp_path}/new/") & HEAVY
    assert not loaded_by("validate", source) & HEAVY


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to convert"),
        (["r.jsonl"], "--to NAME is wanted"),
        (["nowhere.json", "--to", "atif"], "nowhere.json: no such file or directory"),
        (["r.jsonl", "--to", "html"], "html: no contract that is written"),
        (["r.jsonl", "--to", "atof"], "atof: no contract that is written"),
        (["r.jsonl", "--from", "sft", "--to", "atif"], "sft: no contract that is read"),
        (["r.jsonl", "--to", "gym", "--profile", "loose"], "loose"),
        (["r.jsonl", "--to", "atif", "--atif-version", "2"], "2"),
        (["r.jsonl", "--to", "atif", "--no-such-option"], "--no-such-option"),
    ],
)
def test_wrong_use_is_2_and_writes_nothing(words: list[str], message: str, tmp_path: Path) -> None:
    write(tmp_path / "r.jsonl", row())
    done = run("convert", *words, cwd=tmp_path)
    assert (done.code, done.out) == (2, "") and message in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]
