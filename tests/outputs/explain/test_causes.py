"""The fixed list of causes."""

import re

import pytest

from ng_capture.outputs.explain.causes import CAUSES, Group
from tests.support.corpus import corpus_file, corpus_root

MANIFEST = corpus_root() / "drift" / "MANIFEST.md"
_OF_ROLLOUTS = re.compile(r"none|none_\*|mixed_\*")


def names_in_manifest() -> list[str]:
    """The causes in the first column of the table `Causes`; `_name` shares its beginning with the name before it."""
    table = corpus_file(MANIFEST).read_text().split("## Causes")[1].split("## Sources")[0]
    names: list[str] = []
    for line in table.splitlines()[3:]:
        for name in re.findall(r"`([a-z_*]+)`", line.split("|")[1]) if line.startswith("|") else ():
            names.append("tool_json" + name if name.startswith("_") else name)
    return [name for name in names if not _OF_ROLLOUTS.fullmatch(name)]


def test_every_cause_of_the_manifest_is_in_the_list() -> None:
    names = names_in_manifest()
    assert len(names) > 30 and set(names) <= CAUSES.keys()


@pytest.mark.parametrize("name", CAUSES)
def test_every_cause_has_a_group_a_meaning_and_a_remedy(name: str) -> None:
    cause = CAUSES[name]
    assert cause.name == name and re.fullmatch(r"[a-z0-9_]+", name)
    assert isinstance(cause.group, Group)
    assert len(cause.meaning) > 20 and len(cause.remedy) > 20
    assert "{" not in cause.meaning + cause.remedy and "|" not in cause.meaning + cause.remedy


def test_every_group_has_a_cause() -> None:
    assert {cause.group for cause in CAUSES.values()} == set(Group)


def test_no_two_causes_mean_the_same() -> None:
    assert len({cause.meaning for cause in CAUSES.values()}) == len(CAUSES)
