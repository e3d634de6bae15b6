"""`ng-capture explain` as a user runs it."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ng_capture.outputs.explain.causes import CAUSES
from ng_capture.outputs.explain.explanation import Summariser, explain
from ng_capture.outputs.explain.template import Feature, TemplateReport
from ng_capture.outputs.shapes import SHAPES
from ng_capture_cli.explain_screen import explanation_screen, summary_screen, template_screen
from ng_capture_cli.terminal import NO_COLORS
from tests.support.command import COMMAND, run, strict_json
from tests.support.fixtures import ROOT
from tests.support.forge import Forge, write_rows
from tests.support.loading import TOKENIZER_LIBRARIES, loaded_by
from tests.support.looking import shown_forge
from tests.support.raw_calls import chat_call, says, user, write_capture
from tests.support.runs import broken, healthy, words_of, write_lost
from tests.support.templates import KEEPS, STRIPS_REASONING
from tests.support.terminal_text import ALL_HOSTILE, HOSTILE, acting, hostile, write_hostile_tokenizer
from tests.support.tiny_tokenizers import write_cached
from tests.support.vocabulary import Vocabulary

FIXTURES = ROOT / "capture"
TOKENIZER = ("--tokenizer", ROOT / "tokenizer.json")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`2-0` is healthy, `3-0` and `10-0` are broken, of `4-0` a call is lost, `5-0` breaks three times."""
    directory = tmp_path_factory.mktemp("explain") / "store"
    healthy("2-0").write(directory)
    broken("3-0").write(directory)
    broken("10-0").write(directory)
    write_lost(directory, "4-0")
    forge = Forge("5-0")
    first = forge.root([*range(100, 120)], [1, 2, 3, 4], id="aa11")
    second = first.broken([*first.full[:21], 9, 3, 4], [5, 6], id="aa22", model="other")
    third = second.broken(second.full[:-2], [7], id="bb33")
    third.broken([8, *third.full], [9], id="cc44")
    forge.write(directory)
    return directory


# One rollout


def test_a_rollout_is_explained_by_its_findings_and_its_breaks() -> None:
    done = run("explain", FIXTURES, "broken-prefix", *TOKENIZER)
    assert (done.code, done.err) == (0, "")
    assert words_of(done.out) == [
        "broken-prefix masked: prefix_mismatch 2 calls, 2 chains",
        "broken-prefix.tokens.jsonl:2: prefix_mismatch: call c2 leaves its parent c1 at token 2 of 5 (held 20, new 11)",
        "",
        "break 1 of 1 call c2 leaves c1 turn 1",
        "at token 2 of 5: 0 ids into the parent's generation",
        "differs 3 held ids to the end; the two do not meet again",
        "held 1 2 [20] 21 11",
        "new 1 2 [11] 3",
        "held '<|user|>What is a quern?<think>I know this one.</think>A stone hand mill.'",
        "new '<|user|>What is a quern?A stone hand mill.<|user|>And a saddle quern?'",
        "texts differ",
        f"likely reasoning_stripped_by_template (reasoning): {CAUSES['reasoning_stripped_by_template'].meaning}",
        "costs strict 4, terminal 4, all 0 trained tokens by policy",
        f"do {CAUSES['reasoning_stripped_by_template'].remedy}",
    ]


def test_without_a_tokenizer_no_text_is_told() -> None:
    printed = run("explain", FIXTURES, "broken-prefix").out
    assert "texts" not in printed and "held     1 2 [20] 21 11" in printed
    assert "open     " in printed and "likely" not in printed


def test_how_the_two_go_on_is_told_in_words(store: Path) -> None:
    lines = words_of(run("explain", store, "5-0").out)
    assert [line for line in lines if line.startswith("differs")] == [
        "differs 1 held id became 1 id; alike again from token 22 (new: 22)",
        "differs the prompt ends here; 2 held ids are not in it",
        "differs 1 id added; alike again from token 0 (new: 1)",
    ]
    assert [line for line in lines if line.startswith("break")] == [
        "break 1 of 3 call aa22 leaves aa11 turn 1",
        "break 2 of 3 call bb33 leaves aa22 turn 2",
        "break 3 of 3 call cc44 leaves bb33 turn 3",
    ]


def test_ids_that_are_left_out_are_counted(tmp_path: Path) -> None:
    forge = Forge("0-0")
    forge.root([1], [2, 3, *range(50, 60)], id="a").broken([1, *range(50, 60), 4], [5], id="b")
    forge.write(tmp_path)
    assert "differs  2 held ids left out; alike again from token 3 (new: 1)" in run("explain", tmp_path, "0-0").out


def test_a_prompt_that_ends_is_shown_to(tmp_path: Path) -> None:
    forge = Forge("0-0")
    forge.root([1], [2, 3], id="a").broken([1, 2], [5], id="b")
    forge.write(tmp_path)
    assert "new      1 2 [end]" in run("explain", tmp_path, "0-0").out


def test_one_call_can_be_asked_for_by_the_beginning_of_its_id(store: Path) -> None:
    printed = run("explain", store, "5-0", "bb").out
    assert "break 1 of 1   call bb33 leaves aa22" in printed and "cc44 leaves bb33" not in printed
    assert "prefix_mismatch: call bb33" in printed
    assert "call aa11 breaks no prefix" in run("explain", store, "5-0", "aa11").out
    told = strict_json(run("explain", store, "5-0", "cc44", "--json").out)
    assert [each["call"] for each in told["breaks"]] == ["cc44"]


def test_a_rollout_without_a_break_says_so_and_still_its_findings(store: Path) -> None:
    assert words_of(run("explain", store, "2-0").out) == ["2-0 trainable 2 calls, 1 chain", "no prefix breaks"]
    printed = run("explain", store, "4-0").out
    assert "capture_incomplete: call lost was announced but has no record" in printed and "no prefix breaks" in printed


def test_another_call_that_fits_is_named(tmp_path: Path) -> None:
    forge = Forge("0-0")
    second = forge.root([1, 2], [3], id="a").then([4], [5], id="b")
    second.then([6], [7], id="c").broken([*second.full, 9], [10], id="d")
    forge.write(tmp_path)
    assert "fits     the prompt does begin with all of call b" in run("explain", tmp_path, "0-0", "d").out


def test_a_call_without_a_link_is_told_with_what_its_prompt_does_begin_with(tmp_path: Path) -> None:
    forge = Forge("0-0")
    forge.root([1, 2], [3], id="a")
    forge.unresolved([1, 2, 3, 4], [5], id="b")
    forge.unresolved([9], [8], id="c")
    forge.write(tmp_path)
    printed = run("explain", tmp_path, "0-0").out
    assert "no link   call b (parent_unresolved): its prompt does begin with all 3 tokens of call a" in printed
    assert "no link   call c (parent_unresolved): its prompt begins with no other call's sequence" in printed
    assert "no prefix breaks" not in printed
    assert "call b (" not in run("explain", tmp_path, "0-0", "c").out
    told = strict_json(run("explain", tmp_path, "0-0", "c", "--json").out)
    assert told["unlinked"] == [{"call": "c", "reason": "parent_unresolved", "fits": None, "fits_len": None}]


def test_a_parent_that_is_presumed_is_said_to_be(tmp_path: Path) -> None:
    asked = [user("go")]
    rows = [
        chat_call("a", asked, says("yes"), prompt=[1, 2], generation=[3, 4], at=1.0),
        chat_call("b", [*asked, says("no"), user("on")], says("end"), prompt=[1, 2, 5, 6], generation=[7], at=2.0),
    ]
    write_capture(tmp_path, "0-0", rows)
    lines = words_of(run("explain", tmp_path, "0-0").out)
    assert "records made of the raw calls, parents presumed by the conversation" in lines
    assert "break 1 of 1 call b leaves a (presumed) turn 1" in lines
    assert any(line.startswith("likely assistant_text_edited (history)") for line in lines)


def test_equal_texts_are_said_to_be(tmp_path: Path) -> None:
    words = json.loads((ROOT / "tokenizer.json").read_bytes())
    words["model"] |= {"vocab": {"Q": 0, "ab": 1, "c": 2, "a": 3, "bc": 4, "<unk>": 5}, "unk_token": "<unk>"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(words))
    forge = Forge("0-0")
    forge.root([0], [1, 2, *[5] * 8], id="a").broken([0, 3, 4, *[5] * 8, 0], [1], id="b")
    forge.write(tmp_path)
    printed = run("explain", tmp_path, "0-0", "--tokenizer", tmp_path / "tokenizer.json").out
    assert "texts    equal: only the ids differ" in printed and "likely   noncanonical_merge" in printed


def test_what_a_break_costs_follows_the_scored_call(store: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    forge = broken("3-0")
    write_rows(rows, [forge.row(forge.calls[0])])
    assert "costs    strict 2, terminal 2, all 0" in run("explain", store, "3-0").out
    assert "costs    strict 2, terminal 0, all 0" in run("explain", store, "3-0", "--rollouts", rows).out


def test_calls_that_name_one_another_as_parents_are_explained_and_the_command_ends(tmp_path: Path) -> None:
    forge = Forge("0-0")
    first = forge.root([1, 2], [3], id="a", parent_call_id="b", parent_resolution="resolved")
    first.broken([1, 9], [4], id="b").broken([1, 8, 7], [5], id="c")
    forge.write(tmp_path)
    done = subprocess.run([COMMAND, "explain", tmp_path, "0-0"], capture_output=True, text=True, check=False, timeout=5)
    assert done.returncode == 0 and "parent_cycle" in done.stdout


def test_a_break_at_a_call_that_generated_nothing_is_explained(tmp_path: Path) -> None:
    forge = Forge("0-0")
    forge.root([1, 2], [3], id="a").then([4], [], id="b").broken([1, 9], [5], id="c")
    forge.write(tmp_path)
    done = run("explain", tmp_path, "0-0")
    assert done.code == 0, done.err
    assert "break 1 of 1 call c leaves b turn 2" in words_of(done.out)
    assert "costs strict 2, terminal 2, all 0 trained tokens by policy" in words_of(done.out)


# A directory


def test_the_breaks_of_a_directory_are_summed_up_by_cause_turn_and_model(store: Path) -> None:
    done = run("explain", store)
    lines = words_of(done.out)
    assert done.code == 0
    assert lines[0] == "5 rollouts, 4 masked, 5 broken prefixes"
    assert lines[1] == "cause breaks likely rollouts lost: strict lost: terminal lost: all for example"
    assert len(lines[2].split()) >= 8 and lines[2].split()[1:4] == ["2", "0", "2"] and "3-0 b" in lines[2]
    assert "by turn 1: 3, 2: 1, 3: 1" in lines
    assert "by model policy-8b: 4, other: 1" in lines
    cause = lines[2].split()[0]
    assert f"{cause}: {CAUSES[cause].remedy}" in lines
    assert done.err.startswith("hint: ng-capture explain ") and done.err.endswith(" 3-0\n")
    assert run("explain", store, "--summary", "-q") == run("explain", store, "-q")


def test_the_hint_is_a_command_that_can_be_typed(store: Path) -> None:
    hint = run("explain", store).err.removeprefix("hint: ng-capture ")
    assert run(*hint.split()).code == 0


def test_a_directory_without_a_break_is_one_line(tmp_path: Path) -> None:
    healthy("2-0").write(tmp_path)
    done = run("explain", tmp_path)
    assert (done.code, done.out, done.err) == (0, "1 rollout, 0 masked, 0 broken prefixes\n", "")


def test_one_break_is_counted_as_one(tmp_path: Path) -> None:
    broken("2-0").write(tmp_path)
    assert run("explain", tmp_path).out.startswith("1 rollout, 1 masked, 1 broken prefix\n")


def test_a_directory_without_a_rollout_is_told(tmp_path: Path) -> None:
    done = run("explain", tmp_path)
    assert (done.code, done.err) == (1, "no rollout found\n")
    done = run("explain", tmp_path, "--json")
    assert (done.code, strict_json(done.out)["breaks"]) == (1, [])


def test_a_rollout_that_cannot_be_read_is_named_and_the_rest_is_summed_up(tmp_path: Path) -> None:
    broken("2-0").write(tmp_path)
    (tmp_path / "3-0.tokens.jsonl").mkdir()
    done = run("explain", tmp_path, "--json")
    told = strict_json(done.out)
    assert (done.code, told["summary"]["rollouts"], len(told["breaks"])) == (3, 1, 1)
    assert "3-0.tokens.jsonl: cannot be read" in done.err
    assert run("explain", tmp_path, "3-0").code == 3


def test_rollouts_are_chosen_by_pattern(store: Path) -> None:
    assert run("explain", store, "--include", "3-*", "-q").out.startswith("1 rollout, 1 masked, 1 broken prefix\n")
    assert run("explain", store, "--exclude", "5-*", "-q").out.startswith("4 rollouts, 3 masked, 2 broken prefixes\n")


def test_an_output_file_holds_what_would_have_been_printed(store: Path, tmp_path: Path) -> None:
    for words in ((), ("5-0",), ("5-0", "--json")):
        printed = run("explain", store, *words, "-q").out
        done = run("explain", store, *words, "-q", "-o", tmp_path / "out")
        assert (done.code, done.out, (tmp_path / "out").read_text()) == (0, "", printed)


def test_the_lines_of_the_table_align(store: Path) -> None:
    lines = run("explain", store).out.splitlines()
    head, rows = lines[1], lines[2 : lines.index("  what to do")]
    for column in ("breaks", "rollouts", "lost: strict", "lost: terminal", "lost: all"):
        end = head.index(column) + len(column)
        assert all(row[end - 1].isdigit() and row[end] == " " for row in rows), column


def test_colours_stand_where_they_are_asked_for(store: Path) -> None:
    assert "\x1b[1;31m" in run("explain", store, "3-0", "--color", "always").out
    assert "\x1b" not in run("explain", store, "3-0").out


# JSON


@pytest.mark.parametrize("rollout", ["2-0", "3-0", "4-0", "5-0"])
def test_an_explanation_has_its_published_shape(store: Path, rollout: str) -> None:
    done = run("explain", store, rollout, "--json")
    strict_json(done.out)
    told = SHAPES["explained-rollout"].model_validate_json(done.out).model_dump()
    assert (done.code, done.err, told["rollout_id"]) == (0, "", rollout)


def test_a_directory_has_its_published_shape(store: Path) -> None:
    done = run("explain", store, "--json")
    strict_json(done.out)
    told = SHAPES["explained-directory"].model_validate_json(done.out).model_dump()
    breaks = [(each["rollout_id"], each["call"]) for each in told["breaks"]]
    assert breaks == [("3-0", "b"), ("5-0", "aa22"), ("5-0", "bb33"), ("5-0", "cc44"), ("10-0", "b")]
    assert told["summary"]["breaks"] == 5


def test_a_break_in_the_directory_is_the_one_of_its_rollout(store: Path) -> None:
    directory, rollout = (strict_json(run("explain", store, *words, "--json").out) for words in ((), ("5-0",)))
    assert [each for each in directory["breaks"] if each["rollout_id"] == "5-0"] == rollout["breaks"]


# A chat template


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("templates")
    (directory / "keeps").mkdir()
    (directory / "keeps" / "chat_template.jinja").write_text(KEEPS)
    (directory / "strips.jinja").write_text(STRIPS_REASONING)
    (directory / "no.jinja").write_text("{% if %}")
    (directory / "empty").mkdir()
    return directory


def test_a_template_that_keeps_prefixes_leaves_with_0(templates: Path) -> None:
    done = run("explain", "--template", templates / "keeps")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"{templates / 'keeps'}   keeps prefixes"
    assert len(lines) > 8 and all(line.endswith("   kept") for line in lines[1:])


def test_a_template_that_breaks_them_leaves_with_1_and_says_where(templates: Path) -> None:
    done = run("explain", "--template", templates / "strips.jinja")
    assert done.code == 1 and done.out.splitlines()[0].endswith("   breaks prefixes")
    lines = words_of(done.out)
    place = next(number for number, line in enumerate(lines) if line.startswith("reasoning, second user turn broken"))
    assert "turn 2, character" in lines[place]
    assert lines[place + 1].startswith("held '<think>") and lines[place + 2].startswith("new 'A hand mill.")


def test_a_template_that_refuses_is_told(templates: Path, tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text(
        KEEPS + "{% if messages[-1].role == 'tool' %}{{ raise_exception('no\x1b') }}{% endif %}"
    )
    done = run("explain", "--template", tmp_path / "t.jinja")
    assert "refused   no\\u001b" in done.out


@pytest.mark.parametrize("place", ["keeps", "strips.jinja"])
def test_a_template_has_its_published_shape(templates: Path, place: str) -> None:
    done = run("explain", "--template", templates / place, "--json")
    told = SHAPES["explained-template"].model_validate_json(done.out).model_dump()
    assert done.code == (0 if told["keeps_prefixes"] else 1)


def test_a_template_in_the_cache_is_found_by_its_name(tmp_path: Path) -> None:
    home = write_cached(tmp_path, "quern/mill-1b", chat_template=KEEPS)
    done = run("explain", "--template", "quern/mill-1b", HF_HOME=str(home), HF_HUB_OFFLINE="1")
    assert (done.code, done.out.splitlines()[0]) == (0, "quern/mill-1b   keeps prefixes")


def test_a_cached_tokenizer_without_a_template_is_wrong_use(tmp_path: Path) -> None:
    home = write_cached(tmp_path, "quern/mill-1b")
    done = run("explain", "--template", "quern/mill-1b", HF_HOME=str(home), HF_HUB_OFFLINE="1")
    assert (done.code, done.out) == (2, "")
    assert "ng-capture: quern/mill-1b: no chat template" in done.err and "\nhint: " in done.err


# Wrong use

WRONG: list[tuple[list[str], str]] = [
    (["nowhere"], "nowhere: no such file or directory"),
    (["store", "3-0", "--summary"], "--summary is about the whole directory"),
    (["store", "--template", "t"], "--template looks at a chat template and takes no PATH"),
    (["--template", "no.jinja"], "the chat template cannot be read"),
]
HINTED: list[tuple[list[str], str]] = [
    ([], "no path given"),
    (["store", "99-9"], "store: no rollout 99-9"),
    (["store", "5-0", "zz"], "no call zz in this rollout"),
    (["store", "5-0", "aa"], "aa is the beginning of 2 calls: aa11, aa22"),
    (["store", "5-0", "--tokenizer", "nowhere.json"], "nowhere.json: no tokenizer can be read there"),
    (["--template", "empty"], "empty: no chat template in this folder"),
    (["--template", "quern/mill-1b"], "quern/mill-1b: no chat template there, and none in the local cache"),
]


@pytest.mark.parametrize(("words", "message"), [*WRONG, *HINTED])
def test_wrong_use_is_one_clear_line_and_code_2(store: Path, templates: Path, words: list[str], message: str) -> None:
    (templates / "store").unlink(missing_ok=True)
    (templates / "store").symlink_to(store)
    done = run("explain", *words, cwd=templates, HF_HUB_OFFLINE="1", HF_HOME=str(templates / "hub"))
    assert (done.code, done.out) == (2, "")
    assert message in done.err and "Traceback" not in done.err
    if (words, message) in HINTED:
        assert "\nhint: " in done.err


def test_wrong_use_writes_no_output(store: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("before")
    assert run("explain", store, "5-0", "zz", "-o", tmp_path / "out").code == 2
    assert (tmp_path / "out").read_text() == "before" and len(list(tmp_path.iterdir())) == 1


def test_an_output_that_would_replace_a_capture_is_refused(store: Path) -> None:
    path = store / "3-0.tokens.jsonl"
    before = path.read_bytes()
    assert run("explain", store, "3-0", "-o", path).code == 2 and path.read_bytes() == before


# Captured text cannot act


def test_captured_text_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    forge, rows = hostile(ALL_HOSTILE)
    forge.write(tmp_path / "store")
    write_capture(tmp_path / "store", "0-0", rows)
    write_hostile_tokenizer(tmp_path / "tokenizer.json")
    for words in (("0-0",), ("0-0", "b"), ()):
        for with_text in ((), ("--tokenizer", tmp_path / "tokenizer.json")):
            done = run("explain", tmp_path / "store", *words, *with_text)
            assert done.code == 0 and not acting(done.out + done.err)
            assert "\\u001b[2J" in done.out and "\\u202eevil" in done.out


some_text = st.sampled_from(list(HOSTILE.values())) | st.text(max_size=6)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=some_text)
def test_no_screen_prints_what_acts(text: str) -> None:
    forge, rows = hostile(text)
    words = Vocabulary(*(f"{text}{number}".encode("utf-8", "replace").decode() for number in range(10)))
    explanation = explain(shown_forge(forge, raw=rows), words.tokenizer)
    summariser = Summariser()
    summariser.add(explanation)
    refused = Feature(name="x", status="refused", note=text)
    differs = Feature(name="y", status="broken", turn=1, at=2, held=text, new=text, note="z")
    report = TemplateReport("ng-capture.template/1", text, False, (refused, differs))
    screens = [
        explanation_screen(explanation, None, NO_COLORS),
        explanation_screen(explanation, explanation.breaks[0].call, NO_COLORS),
        summary_screen(summariser.summary(), NO_COLORS),
        template_screen(report, NO_COLORS),
    ]
    assert not acting("".join(screens))
    assert screens[3].count("\n") == 5


# Pipes and start-up


def test_the_reader_of_a_pipe_may_leave_early(tmp_path: Path) -> None:
    forge = Forge("0-0")
    call = forge.root([1], [2], id="c0")
    for number in range(1, 120):
        call = call.broken([1, 100 + number, *call.full[2:], 5], [6], id=f"c{number}")
    forge.write(tmp_path)
    line = f"{COMMAND} explain {tmp_path} 0-0 | head -n 5; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines()[0].startswith("0-0   masked: prefix_mismatch   120 calls")
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0", "")


@pytest.mark.parametrize("words", [(), ("broken-prefix",), ("broken-prefix", "--json")])
def test_without_a_tokenizer_or_a_template_no_such_library_is_loaded(words: tuple[str, ...]) -> None:
    assert not loaded_by("explain", "fixtures/capture", *words) & TOKENIZER_LIBRARIES


def test_a_template_in_a_folder_is_checked_without_a_tokenizer_library(templates: Path) -> None:
    assert loaded_by("explain", "--template", templates / "keeps") & TOKENIZER_LIBRARIES == {"jinja2"}


def test_the_template_is_not_replaced_by_the_output(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(KEEPS)
    done = run("explain", "--template", tmp_path, "-o", tmp_path / "chat_template.jinja")
    assert done.code == 2 and "would replace the chat template" in done.err
    assert (tmp_path / "chat_template.jinja").read_text() == KEEPS
