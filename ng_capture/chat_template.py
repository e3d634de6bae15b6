"""Find a model's chat template and render conversations with it, as inference servers do. Local files only."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox

from ng_capture.errors import UsageError
from ng_capture.records.json_text import object_in, objects_in
from ng_capture.tokenizer import cached_chat_template

_HINT = "give a folder with chat_template.jinja or tokenizer_config.json, a .jinja file, or a name in the local cache"

Render = Callable[[Sequence[Mapping[str, Any]], bool], str]
"""Messages, and whether the prompt of an answer ends it -> text."""


_RAISED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What the expressions of a template raise."""


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks what a model generates, for trainers' masks; it renders what stands in it."""

    tags = {"generation"}  # noqa: RUF012 - declared so by the base class

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class TemplateRefuses(Exception):
    """The template raises an error for these messages: it has no such turn."""


def load_template(place: str) -> str:
    """The text of a chat template; raises UsageError where there is none."""
    path = Path(place)
    try:
        if path.is_file() and path.suffix != ".json":
            return path.read_text("utf-8")
        if path.is_file():
            return _of_config(path)
        if (path / "chat_template.jinja").is_file():
            return (path / "chat_template.jinja").read_text("utf-8")
        if (path / "tokenizer_config.json").is_file():
            return _of_config(path / "tokenizer_config.json")
        if path.is_dir():
            raise UsageError(f"{place}: no chat template in this folder", hint=_HINT)
        return _of_cache(place)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{place}: no chat template can be read there: {error}", hint=_HINT) from error


def renderer(template: str, tools: Sequence[Mapping[str, Any]] | None, **switches: bool) -> Render:
    """Renders conversations that offer these tools, or none; raises UsageError for a template that is no Jinja.

    `switches` are the template's own, such as `enable_thinking`.
    """
    # the settings of the inference servers; sandboxed, since a template comes from wherever the model came from
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, _Generation]
    )
    environment.filters["tojson"] = _tojson
    environment.globals |= {"raise_exception": _refuse, "strftime_now": datetime(2026, 1, 1, tzinfo=UTC).strftime}
    try:
        compiled = environment.from_string(template)
    except (jinja2.TemplateError, *_RAISED) as error:
        raise UsageError(f"the chat template cannot be read: {error}") from error

    def render(messages: Sequence[Mapping[str, Any]], prompt: bool) -> str:
        try:
            text: str = compiled.render(
                messages=messages,
                tools=None if tools is None else list(tools),
                add_generation_prompt=prompt,
                bos_token="<s>",
                eos_token="</s>",
                **switches,
            )
        except (jinja2.TemplateError, *_RAISED) as error:
            raise TemplateRefuses(str(error)) from error
        return text

    return render


def _of_config(path: Path) -> str:
    template = object_in(json.loads(path.read_text("utf-8"))).get("chat_template")
    if isinstance(template, list):
        named = {str(each.get("name")): each.get("template") for each in objects_in(template)}
        template = named.get("tool_use") or named.get("default")
    if not isinstance(template, str):
        raise UsageError(f"{path}: has no chat template", hint=_HINT)
    return template


def _of_cache(name: str) -> str:
    template = cached_chat_template(name)
    if template is None:
        raise UsageError(f"{name}: no chat template there, and none in the local cache", hint=_HINT)
    return template


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)
