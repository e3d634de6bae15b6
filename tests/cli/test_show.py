"""`ng-capture show` as a user runs it."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ng_capture.outputs.shapes import SHAPES
from ng_capture.outputs.show.call import view_of
from ng_capture.outputs.show.conversation import conversation
from ng_capture.outputs.show.listing import line_of
from ng_capture.outputs.show.spans import token_spans
from ng_capture.outputs.show.tree import tree_of
from ng_capture_cli import show_screen
from ng_capture_cli.terminal import NO_COLORS
from tests.support.command import COMMAND, Run, run, strict_json
from tests.support.entries import chain
from tests.support.fixtures import ROOT
from tests.support.forge import Forge, write_rows
from tests.support.loading import TOKENIZER_LIBRARIES, loaded_by
from tests.support.looking import shown_forge
from tests.support.raw_calls import calls, chat_call, result, says, system, talk, user, write_capture
from tests.support.runs import broken, healthy, words_of, write_lost
from tests.support.terminal_text import ALL_HOSTILE, HOSTILE, acting, hostile, write_hostile_tokenizer
from tests.support.tiny_tokenizers import metaspace, write_json
from tests.support.vocabulary import Vocabulary

FIXTURES = ROOT / "capture"
ROWS = ("--rollouts", ROOT / "rollouts.jsonl")
TOKENIZER = ("--tokenizer", ROOT / "tokenizer.json")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`2-0` and `10-0` are healthy, `3-0` is broken, of `4-0` a call is lost; `5-0` has nothing but raw calls."""
    directory = tmp_path_factory.mktemp("show") / "store"
    healthy("10-0").write(directory)
    healthy("2-0").write(directory, raw=True)
    broken("3-0").write(directory)
    write_lost(directory, "4-0")
    asked = [system("Be brief."), user("What is a quern?")]
    calling = calls(("k1", "look_up", '{"word": "quern"}'), text="Let me look.", reasoning_content="I should.")
    write_capture(
        directory,
        "5-0",
        [
            chat_call("aaaa1111", asked, calling, prompt=[1, 2], generation=[3, 4], finish="tool_calls", at=1.0),
            chat_call(
                "aaaa2222",
                [*asked, calling, result("k1", "a hand mill")],
                says("A hand mill."),
                prompt=[1, 2, 3, 4, 5],
                generation=[6],
                at=2.0,
            ),
        ],
    )
    return directory


# The list


def listed(done: Run) -> list[str]:
    return [line.split()[0] for line in done.out.splitlines()[1:]]


def test_the_rollouts_of_a_directory_are_listed_in_natural_order(store: Path) -> None:
    done = run("show", store)
    assert done.code == 0
    assert words_of(done.out) == [
        "rollout verdict calls chains tokens trained reasons",
        "2-0 trainable 2 1 2 2",
        "3-0 masked 2 2 2 0 prefix_mismatch",
        "4-0 masked 1 1 1 0 capture_incomplete",
        "5-0 trainable 2 1 3 3 (raw calls only)",
        "10-0 trainable 2 1 2 2",
    ]
    assert done.err == "5 rollouts, 2 masked\n"


def test_rewards_are_listed_where_rows_are_given(store: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    write_rows(rows, [healthy("2-0").row(reward=0.5), healthy("10-0").row(reward=2), healthy("9-9").row()])
    done = run("show", store, "--rollouts", rows, "--sort", "reward")
    assert words_of(done.out)[:4] == [
        "rollout verdict calls chains tokens trained reward reasons",
        "10-0 trainable 2 1 2 2 2",
        "9-9 masked 0 0 0 0 1 empty_capture",
        "2-0 trainable 2 1 2 2 0.5",
    ]
    assert words_of(done.out)[4] == "3-0 masked 2 2 2 0 - prefix_mismatch"


@pytest.mark.parametrize("command", ["show", "explain"])
def test_a_broken_line_of_the_rows_is_named(store: Path, tmp_path: Path, command: str) -> None:
    rows = tmp_path / "rows.jsonl"
    write_rows(rows, [healthy("2-0").row()])
    with rows.open("ab") as file:
        file.write(b'{"cut":\n')
    for rollout in ((), ("2-0",)):
        done = run(command, store, *rollout, "--rollouts", rows, "-q")
        assert done.code == 1 and f"{rows}:2: " in done.err and done.out


@pytest.mark.parametrize("view", ["--text", "--tokens"])
def test_a_masked_rollout_of_several_chains_says_that_one_is_shown(store: Path, view: str) -> None:
    assert run("show", store, "3-0", view).err == "masked: one of its 2 chains is shown; --call ID shows any call\n"
    assert run("show", store, "3-0", view, "-q").err == run("show", store, "2-0", view).err == ""


def test_ids_that_the_tokenizer_does_not_have_are_told(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(metaspace().to_str())
    for words in (("show", FIXTURES, "broken-prefix", "--tokens"), ("explain", FIXTURES)):
        told = run(*words, "--tokenizer", tmp_path, "-q").err
        assert "not in the tokenizer's vocabulary" in told and "tokenizer of the policy?" in told


@pytest.mark.parametrize("command", ["show", "explain"])
def test_the_tokenizer_is_not_replaced_by_the_output(store: Path, tmp_path: Path, command: str) -> None:
    write_json(tmp_path / "tokenizer.json")
    before = (tmp_path / "tokenizer.json").read_bytes()
    for place in (tmp_path, tmp_path / "tokenizer.json"):
        done = run(command, store, "3-0", "--tokenizer", place, "-o", tmp_path / "tokenizer.json")
        assert done.code == 2 and "would replace the tokenizer" in done.err
    assert (tmp_path / "tokenizer.json").read_bytes() == before


def test_only_rollouts_with_a_reason_are_listed_where_one_is_named(store: Path) -> None:
    done = run("show", store, "--reason", "prefix_mismatch")
    assert (listed(done), done.err) == (["3-0"], "1 of 5 rollouts, 1 masked\n")
    assert listed(run("show", store, "--reason", "prefix_mismatch", "--reason", "capture_incomplete")) == ["3-0", "4-0"]
    none = run("show", store, "--reason", "torn_tail")
    assert (none.code, none.out, none.err) == (0, "", "0 of 5 rollouts, 0 masked\n")


def test_the_list_is_sorted_as_asked(store: Path) -> None:
    assert listed(run("show", store, "--sort", "tokens")) == ["5-0", "2-0", "3-0", "10-0", "4-0"]
    assert listed(run("show", store, "--sort", "reason")) == ["4-0", "3-0", "2-0", "5-0", "10-0"]


def test_ids_are_chosen_by_pattern_and_the_policy_is_asked_for(store: Path) -> None:
    assert listed(run("show", store, "--include", "1*")) == ["10-0"]
    assert words_of(run("show", store, "--exclude", "*", "--policy", "all", "-q").out) == []
    lines = words_of(run("show", store, "--include", "3-0", "--policy", "all", "-q").out)
    assert lines[1] == "3-0 trainable 2 2 2 2"


def test_an_option_can_come_from_the_environment(store: Path) -> None:
    assert listed(run("show", store, NG_CAPTURE_SHOW_SORT="tokens"))[0] == "5-0"


def test_a_directory_without_a_rollout_is_told(tmp_path: Path) -> None:
    done = run("show", tmp_path)
    assert (done.code, done.out, done.err) == (1, "", "no rollout found\n")


def test_a_rollout_that_cannot_be_read_is_named_and_the_rest_is_listed(tmp_path: Path) -> None:
    healthy("2-0").write(tmp_path)
    (tmp_path / "3-0.tokens.jsonl").mkdir()
    done = run("show", tmp_path)
    assert (done.code, listed(done)) == (3, ["2-0"])
    assert "3-0.tokens.jsonl: cannot be read" in done.err


def test_nothing_is_written_in_the_capture_directory(store: Path) -> None:
    before = {path: path.read_bytes() for path in store.iterdir()}
    for words in ((), ("2-0", "--text"), ("5-0", "--tokens"), ("2-0", "--call", "a")):
        assert run("show", store, *words).code == 0
    assert {path: path.read_bytes() for path in store.iterdir()} == before


# One rollout


def test_a_rollout_is_shown_as_a_flat_tree() -> None:
    done = run("show", FIXTURES, "retried-turn", *ROWS)
    assert (done.code, done.err) == (0, "")
    assert words_of(done.out) == [
        "retried-turn trainable 4 calls, 1 chain reward 1 policy-8b",
        "# call prompt new gen stop what",
        "main",
        "* 0 c1 2 +2 1 - answer c1",
        "|- 1 c2-los 4 +1 1 - [retry of #2, dropped] answer c2-lost",
        "* 2 c2 4 +1 2 - answer c2",
        "* 3 c3 7 +1 1 - answer c3",
    ]


def test_a_broken_link_a_branch_and_a_masked_rollout_are_told(store: Path) -> None:
    assert words_of(run("show", store, "3-0").out) == [
        "3-0 masked: prefix_mismatch 2 calls, 2 chains policy-8b",
        "# call prompt new gen stop what",
        "main",
        "0 a 2 +2 1 - answer a",
        "branch-0",
        "1 b 4 broken 1 - [prefix_mismatch] answer b",
    ]
    assert "[off_path] answer s1" in run("show", FIXTURES, "sub-agent", *ROWS).out


def test_a_call_that_generated_nothing_is_not_called_broken() -> None:
    assert "broken" not in run("show", FIXTURES, "empty-generation", *ROWS).out


def test_raw_calls_alone_are_shown_and_said_to_be_such(store: Path) -> None:
    lines = words_of(run("show", store, "5-0").out)
    assert lines[1] == "records made of the raw calls, parents presumed by the conversation"
    assert lines[4:] == [
        "* 0 aaaa11 2 +2 2 tool_calls look_up: quern",
        "* 1 aaaa22 5 +1 1 stop A hand mill.",
    ]


def test_the_conversation_is_shown_with_its_thinking_folded(store: Path) -> None:
    assert run("show", store, "5-0", "--text").out.splitlines() == [
        "system",
        "  Be brief.",
        "user",
        "  What is a quern?",
        "assistant",
        "  [thinking, 9 characters]",
        "  Let me look.",
        '  -> look_up {"word": "quern"}',
        "tool",
        "  a hand mill",
        "assistant",
        "  A hand mill.",
    ]


def test_tokens_are_shown_by_what_becomes_of_them(store: Path) -> None:
    assert run("show", store, "5-0", "--tokens").out.splitlines() == [
        "row 0",
        "  prompt 0 to 2   call aaaa1111",
        "    1 2",
        "  trained 2 to 4   call aaaa1111",
        "    3 4",
        "  interstitial 4 to 5   call aaaa2222",
        "    5",
        "  trained 5 to 6   call aaaa2222",
        "    6",
    ]


def test_with_a_tokenizer_tokens_are_text() -> None:
    lines = run("show", FIXTURES, "linear", "--tokens", *TOKENIZER).out.splitlines()
    assert lines[:5] == [
        "row 0",
        "  prompt 0 to 3   call c1",
        "    <|user|>|What is a quern?|<|user|>And a saddle quern?",
        "  trained 3 to 6   call c1",
        "    A stone hand mill.|A flat one.|A flat stone",
    ]


def test_the_colours_of_tokens_are_those_of_their_kinds() -> None:
    done = run("show", FIXTURES, "linear", "--tokens", "--color", "always")
    assert "    \x1b[32m11 12 13\x1b[0m" in done.out and "    \x1b[2m4 5\x1b[0m" in done.out
    masked = run("show", FIXTURES, "broken-prefix", "--tokens", "--color", "always")
    assert "    \x1b[33m20 21 11\x1b[0m" in masked.out
    assert "\x1b" not in run("show", FIXTURES, "linear", "--tokens").out


def test_every_chain_has_its_row_of_tokens() -> None:
    lines = run("show", FIXTURES, "sub-agent", "--tokens", "--policy", "all").out.splitlines()
    assert [line for line in lines if line.startswith("row")] == ["row 0", "row 1"]


def test_one_call_is_shown_in_full(store: Path) -> None:
    lines = run("show", store, "5-0", "--call", "aaaa2").out.splitlines()
    assert lines == [
        "5-0   call aaaa2222   5-0.capture.jsonl:2",
        "  model     policy-8b",
        "  response  resp-aaaa2222",
        "  made at   1970-01-01 00:00:02Z",
        "  parent    aaaa1111",
        "  stop      stop",
        "prompt: 5 tokens",
        "    1 2 3 4 5",
        "generation: 1 token",
        "    6",
        "log probabilities",
        "    -0.25",
        "asked",
        "  system",
        "    Be brief.",
        "  user",
        "    What is a quern?",
        "  assistant",
        "    ~ I should.",
        "    Let me look.",
        '    -> look_up {"word": "quern"}',
        "  tool",
        "    a hand mill",
        "answered",
        "  assistant",
        "    A hand mill.",
    ]


def test_a_call_with_a_finding_and_without_a_prompt_says_so(tmp_path: Path) -> None:
    forge = Forge("0-0", delta=True)
    first = forge.root([1], [2], id="a")
    first.then([3], [4], id="b", parent_call_id="nowhere")
    first.broken([8], [9], id="c", weight_version=7)
    forge.write(tmp_path)
    told = run("show", tmp_path, "0-0", "--call", "b").out
    assert "delta_unresolvable" in told
    assert "prompt: cannot be put together" in told and "generation: cannot be put together" in told
    lines = words_of(run("show", tmp_path, "0-0", "--call", "c").out)
    assert {"parent a (the link does not hold)", "weights 7"} <= set(lines)
    assert "parent root" in words_of(run("show", tmp_path, "0-0", "--call", "a").out)


def test_a_call_that_was_asked_nothing_and_answered_nothing_shows_no_more(tmp_path: Path) -> None:
    forge = Forge("0-0")
    silent = {"output_items": [], "token_item_index": None, "generation_log_probs": ["x"]}
    forge.root([], [2, 3], id="a", **silent).then([], [4], id="b")
    forge.write(tmp_path)
    lines = run("show", tmp_path, "0-0", "--call", "a").out.splitlines()
    assert lines[-3:] == ["prompt: 0 tokens", "generation: 2 tokens", "    2 3"]
    spans = [line.split()[0] for line in run("show", tmp_path, "0-0", "--tokens").out.splitlines() if "call" in line]
    assert spans == ["context", "context"]


def test_a_call_with_a_tokenizer_is_text() -> None:
    lines = run("show", FIXTURES, "linear", "--call", "c2", *TOKENIZER).out.splitlines()
    assert "     for grain.|Farmers." in lines


def test_an_output_file_holds_what_would_have_been_printed(store: Path, tmp_path: Path) -> None:
    for words in ([], ["2-0"], ["2-0", "--json"]):
        printed = run("show", store, *words).out
        done = run("show", store, *words, "-o", tmp_path / "out")
        assert (done.code, done.out, (tmp_path / "out").read_text()) == (0, "", printed)


# JSON


@pytest.mark.parametrize("rollout", ["3-0", "5-0"])
@pytest.mark.parametrize(
    ("view", "shape"),
    [
        ((), "shown-rollout"),
        (("--text",), "shown-message"),
        (("--tokens",), "shown-tokens"),
        (("--call", "a"), "shown-call"),
    ],
)
def test_every_view_of_a_rollout_has_its_published_shape(
    store: Path, rollout: str, view: tuple[str, ...], shape: str
) -> None:
    words = ("--call", "aaaa1") if rollout == "5-0" and "--call" in view else view
    done = run("show", store, rollout, *words, "--json", "-q")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines and (len(lines) == 1 or shape in ("shown-message", "shown-tokens"))
    for line in lines:
        strict_json(line)
        SHAPES[shape].model_validate_json(line)


def test_the_list_has_its_published_shape(store: Path, tmp_path: Path) -> None:
    told = SHAPES["shown-list"].model_validate_json(run("show", store, "--json").out)
    assert [each["rollout_id"] for each in told.model_dump()["rollouts"]] == ["2-0", "3-0", "4-0", "5-0", "10-0"]
    done = run("show", tmp_path, "--json")
    assert (done.code, strict_json(done.out)["rollouts"]) == (1, [])


def test_json_holds_the_same_tokens_as_the_training_row(store: Path) -> None:
    rows = store.parent / "rows.jsonl"
    assert run("rebuild", store, "--include", "5-0", "--to", "rows", "-o", rows).code in (0, 1)
    spans = run("show", store, "5-0", "--tokens", "--json").rows
    assert [each for span in spans for each in span["ids"]] == [1, 2, 3, 4, 5, 6]
    if rows.exists() and rows.read_text():
        assert json.loads(rows.read_text())["tokens"] == [1, 2, 3, 4, 5, 6]


# Wrong use


WRONG: list[tuple[list[str], str]] = [
    (["nowhere"], "nowhere: no such file or directory"),
    (["store", "5-0", "--text", "--tokens"], "--text and --tokens: one view of one ROLLOUT"),
    (["store", "--text"], "--text: one view of one ROLLOUT"),
]
HINTED: list[tuple[list[str], str]] = [
    ([], "no path given"),
    (["store", "99-9"], "store: no rollout 99-9"),
    (["store", "*"], "store: no rollout *"),
    (["store", "5-0", "--call", "zzz"], "no call zzz in this rollout"),
    (["store", "5-0", "--call", "aaaa"], "aaaa is the beginning of 2 calls: aaaa1111, aaaa2222"),
    (["store", "5-0", "--tokens", "--tokenizer", "store/2-0.tokens.jsonl"], "no tokenizer can be read there"),
]


@pytest.mark.parametrize(("words", "message"), [*WRONG, *HINTED])
def test_wrong_use_is_one_clear_line_and_code_2(store: Path, words: list[str], message: str) -> None:
    done = run("show", *words, cwd=store.parent, HF_HUB_OFFLINE="1", HF_HOME=str(store.parent / "hub"))
    assert (done.code, done.out) == (2, "")
    assert message in done.err and "Traceback" not in done.err
    if (words, message) in HINTED:
        assert "\nhint: " in done.err


def test_an_output_that_would_replace_a_capture_is_refused(store: Path) -> None:
    path = store / "2-0.tokens.jsonl"
    before = path.read_bytes()
    done = run("show", store, "2-0", "-o", path)
    assert done.code == 2 and path.read_bytes() == before


def test_a_call_may_be_named_by_its_whole_id_that_begins_another(tmp_path: Path) -> None:
    forge = Forge("0-0")
    forge.root([1], [2], id="a").then([3], [4], id="ab")
    forge.write(tmp_path)
    assert "call a " in run("show", tmp_path, "0-0", "--call", "a").out.splitlines()[0]


@pytest.mark.parametrize("rollout_id", ["r[1]", "r?", "r*"])
def test_a_rollout_whose_id_is_a_pattern_is_found_by_its_name(tmp_path: Path, rollout_id: str) -> None:
    """Whatever stands in the list can be asked for."""
    healthy(rollout_id).write(tmp_path)
    assert rollout_id in run("show", tmp_path).out
    assert run("show", tmp_path, rollout_id).code == 0


# Captured text cannot act


VIEWS: dict[str, tuple[str, ...]] = {
    "list": (),
    "tree": ("0-0",),
    "conversation": ("0-0", "--text"),
    "tokens": ("0-0", "--tokens"),
    "call": ("0-0", "--call", "a"),
}


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a rollout of hostile text, and a tokenizer with hostile pieces."""
    directory = tmp_path_factory.mktemp("evil")
    forge, rows = hostile(ALL_HOSTILE)
    forge.write(directory / "store")
    write_capture(directory / "store", "0-0", rows)
    write_hostile_tokenizer(directory / "tokenizer.json")
    return directory


@pytest.mark.parametrize("view", VIEWS)
def test_captured_text_cannot_act_on_a_terminal(evil: Path, view: str) -> None:
    texts = [run("show", evil / "store", *VIEWS[view])]
    if view in ("tokens", "call"):
        texts.append(run("show", evil / "store", *VIEWS[view], "--tokenizer", evil / "tokenizer.json"))
    for done in texts:
        assert done.code == 0 and not acting(done.out + done.err)
    if view != "list":
        assert "\\u001b[2J" in texts[-1].out and "\\u202eevil" in texts[-1].out
    if view == "conversation":
        assert "[bold red]x[/bold red]" in texts[-1].out


some_text = st.sampled_from(list(HOSTILE.values())) | st.text(max_size=6)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=some_text)
def test_no_view_prints_what_acts(text: str) -> None:
    forge, rows = hostile(text)
    rollout = shown_forge(forge, raw=rows)
    words = Vocabulary(*(f"{text}{number}".encode("utf-8", "replace").decode() for number in range(10)))
    printed = [
        *show_screen.list_lines([line_of(rollout)], 80, NO_COLORS),
        *show_screen.tree_lines(tree_of(rollout), 80, NO_COLORS),
        *show_screen.text_lines(conversation(rollout, words.tokenizer), NO_COLORS),
        *show_screen.token_lines(token_spans(rollout.judgement), words.tokenizer, 80, NO_COLORS),
    ]
    for call in rollout.judgement.analysis.calls:
        printed += show_screen.call_lines(view_of(rollout, call), words.tokenizer, 80, NO_COLORS)
    for line in printed:
        assert not acting(line) and "\n" not in line


def test_a_line_break_in_an_id_breaks_no_line(tmp_path: Path) -> None:
    forge = Forge("0-0")
    forge.root([1], [2], id="a\nb").then([3], [4], id="c\td", model="m\nn")
    forge.write(tmp_path)
    lines = run("show", tmp_path, "0-0").out.splitlines()
    assert len(lines) == 5 and "a\\u000ab" in lines[3]
    assert not any("\t" in line for line in lines), "a tab moves the columns"


# Screens


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one rollout of 200 calls."""
    directory = tmp_path_factory.mktemp("long")
    lines = chain("0-0", calls=200, first_prompt=400, generation=80, growth=40)
    (directory / "0-0.tokens.jsonl").write_bytes(b"".join(lines))
    return directory


def test_a_rollout_of_200_calls_is_a_line_each(long: Path) -> None:
    done = run("show", long, "0-0", COLUMNS="80")
    lines = done.out.splitlines()
    assert done.code == 0 and len(lines) == 203
    assert all(cell_len(line) <= 80 for line in lines)


@pytest.mark.parametrize("words", ["0-0", "0-0 --tokens", "0-0 --call 0-0-c199"])
def test_the_reader_of_a_pipe_may_leave_early(long: Path, words: str) -> None:
    line = f"{COMMAND} show {long} {words} -q | head -n 5; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def cells_before(line: str, word: str) -> int:
    return cell_len(line[: line.index(word)])


def test_wide_characters_align_in_the_list(tmp_path: Path) -> None:
    for name in ("石臼", "quern", "挽き臼の石", "e\u0301"):
        healthy(name).write(tmp_path)
    head, *lines = run("show", tmp_path).out.splitlines()
    assert {cells_before(line, line.split()[1]) for line in lines} == {cells_before(head, "verdict")}


def test_wide_characters_align_in_the_tree(tmp_path: Path) -> None:
    forge = Forge("0-0")
    first = forge.root([1], [2], id="石臼は")
    first.then([3], [4], id="quern-1").then([5], [6], id="e\u0301\u200d\U0001f600x")
    forge.write(tmp_path)
    rows = [{**call.raw(), "response": {**call.raw()["response"], "stop_reason": "halt"}} for call in forge.calls]
    write_capture(tmp_path, "0-0", rows)
    _, head, _, *lines = run("show", tmp_path, "0-0").out.splitlines()
    assert {cells_before(line, "halt") for line in lines} == {cells_before(head, "stop")}


def test_names_of_wide_characters_are_whole_where_there_is_room(tmp_path: Path) -> None:
    name = "挽き臼の石の上"
    forge = Forge(name)
    forge.root([1], [2], id="石臼は粉を挽く").then([3], [4], id="石臼は粉を挽いた")
    forge.write(tmp_path)
    assert name in run("show", tmp_path).out
    printed = run("show", tmp_path, name).out
    assert "石臼は粉を挽く" in printed and "石臼は粉を挽い" in printed


@pytest.mark.parametrize("letter", ["石", "\x1b", "a"])
def test_short_names_tell_calls_apart_whatever_they_are_made_of(tmp_path: Path, letter: str) -> None:
    forge = Forge("0-0")
    for number in range(3):
        forge.root([1, number], [2], id=f"{letter * 7}{number}")
    forge.write(tmp_path)
    lines = [line for line in run("show", tmp_path, "0-0").out.splitlines() if "answer" in line]
    names = [line.split()[1] for line in lines]
    assert len(set(names)) == 3


@pytest.mark.parametrize("text", ["石臼" * 200, "x" * 999, "\x1b" * 200])
def test_a_line_of_a_tree_or_a_list_is_never_wider_than_the_screen(tmp_path: Path, text: str) -> None:
    forge = Forge("0-0")
    forge.root([1], [2], id="石臼は粉を挽く", output_items=[], token_item_index=None)
    forge.write(tmp_path)
    write_capture(tmp_path, "0-0", [chat_call("石臼は粉を挽く", [user("go")], says(text), finish=text)])
    lines = [*run("show", tmp_path, "0-0", COLUMNS="100").out.splitlines()[1:]]
    lines += run("show", tmp_path, COLUMNS="100").out.splitlines()
    assert all(cell_len(line) <= 100 for line in lines)


def test_a_masked_rollout_of_many_reasons_fits_on_a_line(tmp_path: Path) -> None:
    forge = Forge("0-0")
    forge.root([1], [2], id="a", digest="0" * 64, generation_log_probs=[1.0]).broken([9], [8], id="b")
    files = forge.files()
    (tmp_path / "0-0.tokens.jsonl").write_bytes(files["0-0.tokens.jsonl"] + b"{")
    (tmp_path / "0-0.tokens.intents").write_bytes(b"lost\n")
    lines = run("show", tmp_path, "--policy", "strict", COLUMNS="72").out.splitlines()
    assert all(cell_len(line) <= 72 for line in lines) and lines[1].startswith("0-0")


@pytest.mark.parametrize("words", [(), ("linear",), ("linear", "--text"), ("linear", "--tokens"), ("linear", "--json")])
def test_without_a_tokenizer_no_library_of_tokenizers_is_loaded(words: tuple[str, ...]) -> None:
    assert not loaded_by("show", "fixtures/capture", *words) & TOKENIZER_LIBRARIES


def test_a_long_conversation_is_shown_whole(tmp_path: Path) -> None:
    rows = talk(*[says(f"answer {n}") for n in range(200)], ids=[f"c{n}" for n in range(200)])
    forge = Forge("0-0")
    call = forge.root([1], [2], id="c0")
    for number in range(1, 200):
        call = call.then([3], [4], id=f"c{number}")
    forge.write(tmp_path)
    write_capture(tmp_path, "0-0", rows)
    printed = run("show", tmp_path, "0-0", "--text").out
    assert printed.count("\nassistant\n") == 200 and printed.count("  question 7\n") == 1
