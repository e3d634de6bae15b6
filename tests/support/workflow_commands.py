"""Workflow commands of GitHub Actions, read as its runner reads them.

`::name key=value,key=value::message`: values and message have `%25`, `%0D` and `%0A` for what would end the line,
values also `%3A` and `%2C` for what would end them.
"""

import re
from dataclasses import dataclass

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_IN_MESSAGES = {"%0D": "\r", "%0A": "\n", "%25": "%"}
_IN_VALUES = {"%3A": ":", "%2C": ",", **_IN_MESSAGES}


@dataclass(frozen=True)
class WorkflowCommand:
    """One command, its escapes undone."""

    name: str
    properties: dict[str, str]
    message: str


def workflow_commands(text: str) -> list[WorkflowCommand]:
    """The commands of an output that holds nothing else; raises AssertionError for a line that is none."""
    lines = _LINE_BREAK.split(text)
    assert lines.pop() == "", "the last line has no line break"
    return [_command(line) for line in lines]


def _command(line: str) -> WorkflowCommand:
    # the first "::" after the beginning ends the head, whatever comes behind it
    head, ends, message = line.removeprefix("::").partition("::")
    assert line.startswith("::") and ends, f"no workflow command: {line!r}"
    name, _, properties = head.partition(" ")
    told = {}
    for pair in properties.split(",") if properties else ():
        key, equals, value = pair.partition("=")
        assert equals and key not in told, f"no property: {pair!r} in {line!r}"
        told[key] = _plain(value, _IN_VALUES)
    return WorkflowCommand(name, told, _plain(message, _IN_MESSAGES))


def _plain(text: str, escapes: dict[str, str]) -> str:
    return re.sub("|".join(escapes), lambda match: escapes[match[0]], text)
