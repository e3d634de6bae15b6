"""Does a chat template keep prefixes? Templates that do, and templates that break them in one way each."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.chat_template import TemplateRefuses, load_template, renderer
from ng_capture.errors import UsageError
from ng_capture.outputs.explain.template import CONVERSATIONS, Feature, TemplateReport, check_template
from tests.support.corpus import corpus_file, corpus_root
from tests.support.templates import (
    KEEPS,
    MOVES_TOOLS,
    SHORTENS_RESULTS,
    STRIPS_REASONING,
    THINKING_SWITCH,
    TRIMS,
)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(text: str, name: str = "chat_template.jinja") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return written


def broken(report: TemplateReport) -> dict[str, Feature]:
    return {feature.name: feature for feature in report.features if feature.status == "broken"}


def test_a_template_that_keeps_history_keeps_every_prefix(write: Any) -> None:
    report = check_template(write(KEEPS))
    assert report.keeps_prefixes
    assert {feature.status for feature in report.features} == {"kept"}
    assert {feature.name for feature in report.features} >= CONVERSATIONS.keys()


def test_the_conversations_have_each_feature_that_is_named() -> None:
    names = " ".join(CONVERSATIONS)
    assert all(name in names for name in ("reasoning", "tool call", "tool result", "second user turn", "empty content"))
    assert all(turns[-1]["role"] == "assistant" for turns in CONVERSATIONS.values())


def test_a_template_that_strips_reasoning_says_after_which_turn_and_where(write: Any) -> None:
    report = check_template(write(STRIPS_REASONING))
    assert not report.keeps_prefixes
    found = broken(report)
    assert found.keys() == {"reasoning, second user turn", "reasoning with a tool call, second user turn"}
    first = found["reasoning, second user turn"]
    assert first.held is not None and first.new is not None
    assert first.turn == 2 and first.held.startswith("<think>") and first.new.startswith("A hand mill.")
    assert first.note == "the next prompt renders the answer otherwise"


def test_the_place_is_that_of_the_first_character_that_differs(write: Any) -> None:
    letter = "{{ 'b' if m.role == 'assistant' and not loop.last else 'a' }}"
    text = f"{{% for m in messages %}}{letter}{{{{ m.content }}}}{{% endfor %}}"
    found = broken(check_template(write(text)))["second user turn"]
    before = len("aYou answer briefly.aWhat is a quern?")
    after = "A hand mill.aAnd a saddle quern?"
    assert (found.turn, found.at, found.held, found.new) == (2, before, "aA hand mill.", f"b{after}")


def test_a_template_that_moves_the_tools_says_so(write: Any) -> None:
    found = broken(check_template(write(MOVES_TOOLS)))
    assert found.keys() == {name for name in CONVERSATIONS if "second user turn" in name}
    assert all("tools" in str(feature.held) for feature in found.values())


def test_a_template_that_shortens_old_tool_results_says_so(write: Any) -> None:
    found = broken(check_template(write(SHORTENS_RESULTS)))
    assert {"tool call", "parallel tool calls", "empty content"} <= found.keys()
    first = found["tool call"]
    assert (first.turn, first.note) == (4, "the answer does not begin where its prompt ended")
    assert str(first.held).startswith("tone hand mill")


def test_a_template_that_trims_answers_says_so(write: Any) -> None:
    """What was generated may end in white space; in history it does not."""
    assert not check_template(write(TRIMS)).keeps_prefixes


def test_a_template_that_never_shows_reasoning_says_so(write: Any) -> None:
    found = broken(check_template(write(KEEPS.replace("m.reasoning_content", "m.nothing"))))
    assert found.keys() == {name for name in CONVERSATIONS if "reasoning" in name}
    assert {feature.note for feature in found.values()} == {"the answer is rendered without its reasoning"}


def test_a_template_that_leaves_out_content_or_calls_says_so(write: Any) -> None:
    for part, what in (("m.content", "content"), ("call.function.name", "call")):
        assert part in KEEPS
        found = broken(check_template(write(KEEPS.replace(part, "''"))))
        assert f"the answer is rendered without its {what}" in {feature.note for feature in found.values()}


REFUSALS = {
    "no system turn": "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}",
    "no tools": "{% if tools %}{{ raise_exception('no tools') }}{% endif %}",
    "arguments as text": "{% for m in messages if m.tool_calls %}{% for call in m.tool_calls %}"
    "{% if call.function.arguments is not string %}{{ raise_exception('text') }}{% endif %}{% endfor %}{% endfor %}",
}


@pytest.mark.parametrize("form", REFUSALS)
def test_a_form_that_a_template_refuses_is_left_for_another(write: Any, form: str) -> None:
    report = check_template(write(REFUSALS[form] + KEEPS))
    assert report.keeps_prefixes
    notes = {feature.note for feature in report.features if feature.status == "kept"}
    assert f"rendered with {form}" in notes


def test_what_a_template_marks_as_generated_is_rendered(write: Any) -> None:
    marked = KEEPS.replace("{{ turn(m) }}", "{% generation %}{{ turn(m) }}{% endgeneration %}")
    assert marked != KEEPS and check_template(write(marked)).keeps_prefixes


def test_the_switch_for_thinking_is_tried_where_a_template_has_it(write: Any) -> None:
    found = broken(check_template(write(THINKING_SWITCH)))
    assert found.keys() == {"thinking switched off"}
    assert found["thinking switched off"].held == "<think></think>"


def test_a_template_that_shows_an_empty_block_for_what_had_no_reasoning_is_not_blamed_for_it(write: Any) -> None:
    """The block is written for the last answer alone, and was not generated."""
    last = (
        "{%- if m.role == 'assistant' and loop.last and not m.reasoning_content -%}<think>\n\n</think>\n\n{%- endif -%}"
    )
    assert check_template(write(KEEPS.replace("{{ turn(m) }}", f"{last}{{{{ turn(m) }}}}"))).keeps_prefixes


def test_what_a_template_refuses_is_told_and_the_rest_is_checked(write: Any) -> None:
    refuses = (
        KEEPS + "{%- for m in messages if m.role == 'tool' -%}{{ raise_exception('no tools here') }}{%- endfor -%}"
    )
    report = check_template(write(refuses))
    told = {feature.name: (feature.status, feature.note) for feature in report.features}
    assert told["tool call"] == ("refused", "no tools here")
    assert told["second user turn"] == ("kept", None)
    assert report.keeps_prefixes


def test_a_template_that_can_render_nothing_is_not_said_to_keep_prefixes(write: Any) -> None:
    assert not check_template(write("{{ raise_exception('never') }}")).keeps_prefixes


RAISING = {
    "a name that is not there": "{{ messages.nothing.at_all }}",
    "a place that is not there": "{{ messages[99].content.text }}",
    "a value of another type": "{{ messages + 1 }}",
    "no loader": "{% include 'other' %}",
    "a forbidden attribute": "{{ messages.__class__.__mro__ }}",
    "a change of the messages": "{{ messages.append(1) }}",
    "a division by zero": "{{ 1 / 0 }}",
    "a range without end": "{% for n in range(10 ** 9) %}{{ n }}{% endfor %}",
    "a macro that calls itself": "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
}


@pytest.mark.parametrize("name", RAISING)
def test_whatever_a_template_raises_it_refuses(write: Any, name: str) -> None:
    report = check_template(write(RAISING[name]))
    assert {feature.status for feature in report.features} == {"refused"}


@pytest.mark.parametrize(
    "text",
    [
        "{% if %}",
        "{{ messages",
        "{% for %}",
        "{% nothing %}",
        "{{ 'a' | nothing_such }}",
        "{{ (10 ** 5000) | string }}",
    ],
)
def test_what_is_no_jinja_is_wrong_use(write: Any, text: str) -> None:
    with pytest.raises(UsageError):
        check_template(write(text))


# Where a template is found

CONFIGS = {
    "a text": {"chat_template": KEEPS},
    "the one for tools": {
        "chat_template": [
            {"name": "default", "template": "{{ no }}"},
            {"name": "tool_use", "template": KEEPS},
        ]
    },
    "the default one": {"chat_template": [{"name": "default", "template": KEEPS}, {"name": "rag", "template": "x"}, 5]},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_template_is_found_in_a_configuration(tmp_path: Path, write: Any, name: str) -> None:
    place = write(json.dumps(CONFIGS[name]), "tokenizer_config.json")
    assert load_template(place) == load_template(str(tmp_path)) == KEEPS


def test_a_file_of_its_own_comes_first(tmp_path: Path, write: Any) -> None:
    write(json.dumps({"chat_template": "x"}), "tokenizer_config.json")
    place = write(KEEPS)
    assert load_template(str(tmp_path)) == load_template(place) == KEEPS


NOT_THERE = ["{}", '{"chat_template": null}', '{"chat_template": []}', '{"chat_template": 5}', "{", "[]", "5", "null"]
ODD = ['{"chat_template": [{"name": ["x"], "template": "x"}]}', "[" * 100_000, '{"chat_template": [{"name": {}}]}']


@pytest.mark.parametrize("text", [*NOT_THERE, *(pytest.param(text, id=text[:40]) for text in ODD)])
def test_a_configuration_without_a_template_is_wrong_use(tmp_path: Path, write: Any, text: str) -> None:
    place = write(text, "tokenizer_config.json")
    for where in (place, str(tmp_path)):
        with pytest.raises(UsageError) as raised:
            load_template(where)
        assert raised.value.hint


def test_a_folder_without_a_template_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load_template(str(tmp_path))
    assert str(tmp_path) in raised.value.message and raised.value.hint


def test_bytes_that_are_no_text_are_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError):
        load_template(str(tmp_path))


# Rendering as servers do


def test_rendering_is_what_the_servers_do() -> None:
    text = (
        "{{ bos_token }}{{ tools | length }}{{ messages[0] | tojson }}{{ messages[0] | tojson(indent=1) }}"
        "{{ strftime_now('%Y') }}{% for n in range(9) %}{% if n > 1 %}{% break %}{% endif %}{{ n }}{% endfor %}"
        "{{ eos_token }}{{ 'p' if add_generation_prompt else 'h' }}{{ flag }}"
    )
    render = renderer(text, [{}], flag=True)
    assert render([{"content": "é"}], True) == '<s>1{"content": "é"}{\n "content": "é"\n}202601</s>pTrue'
    assert render([{"content": "é"}], False).endswith("</s>hTrue")


def test_a_template_cannot_change_the_messages() -> None:
    turns = [{"role": "user", "content": "x"}]
    with pytest.raises(TemplateRefuses):
        renderer("{{ messages.append(1) }}", [])(turns, False)
    assert len(turns) == 1


def test_the_template_of_the_corpus_strips_reasoning() -> None:
    folder = corpus_file(corpus_root() / "drift" / "qwen3")
    found = broken(check_template(str(folder)))
    assert {"reasoning, second user turn", "thinking switched off"} <= found.keys()
    assert "tool call" not in found
