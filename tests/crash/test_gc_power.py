"""Promise 7, held against power cuts: replayed after every file operation of the real command."""

import os
from pathlib import Path

import pytest

from tests.crash.test_gc_killed import DONE_OR_NOTHING_LEFT, Scene, at_each, made
from tests.support.power import Node, Step, Tree, after_cuts, look, put, recorded

EVERY = 1 if os.environ.get("CI") == "true" else 8


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return made(tmp_path_factory.mktemp("power") / "scene")


def replayed(scene: Scene, root: Path, command: str) -> list[Tree]:
    """What power cuts during a gc or a restore may leave of the capture directory."""
    capture = scene.place(root)
    before = look(capture)
    shim = {"tree": str(capture), "journal": str(root / "journal")}
    assert (scene.gc if command == "gc" else scene.restore)(capture, **shim).code == 0
    states = list(after_cuts(before, recorded(root / "journal")))
    assert len(states) > len(scene.payload())
    return states


def cut(scene: Scene, tree: Tree, root: Path) -> Path:
    capture = scene.place(root)
    for path in sorted(capture.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    put(tree, capture)
    return capture


def test_a_power_cut_during_a_gc_leaves_each_file_in_one_place_and_the_next_run_completes(
    scene: Scene, tmp_path: Path
) -> None:
    states = replayed(scene, tmp_path / "undisturbed", "gc")

    def strike(number: int) -> None:
        capture = cut(scene, states[number], tmp_path / str(number))
        scene.check(capture)
        again = scene.gc(capture)
        assert again.code == 0, again.err
        scene.check(capture)
        scene.check_moved(capture)

    at_each(strike, range(0, len(states), EVERY))


def test_a_power_cut_during_a_restore_loses_nothing_and_the_next_one_completes(scene: Scene, tmp_path: Path) -> None:
    emptied = scene._replace(root=tmp_path / "emptied")
    assert emptied.gc(scene.place(emptied.root)).code == 0
    states = replayed(emptied, tmp_path / "undisturbed", "restore")

    def strike(number: int) -> None:
        capture = cut(emptied, states[number], tmp_path / str(number))
        emptied.check(capture)
        again = emptied.restore(capture)
        assert again.code in DONE_OR_NOTHING_LEFT, again.err
        emptied.check_back(capture)

    at_each(strike, range(0, len(states), EVERY))


# The replay itself


def file(inode: int, data: bytes) -> Node:
    return Node(inode, 0o100644, 0, data)


FOLDER = Node(1, 0o040755, 0, None)
BEFORE = {"a": file(7, b"old"), "there": FOLDER}


def lasting(*steps: Step) -> list[dict[str, bytes | None]]:
    return [{path: node.data for path, node in tree.items()} for tree in after_cuts(BEFORE, steps)]


def test_what_was_written_and_not_synced_may_be_lost() -> None:
    written = BEFORE | {"a": file(7, b"old and new")}
    kept: dict[str, bytes | None] = {"a": b"old and new", "there": None}
    assert lasting(Step("write", "a", written)) == [{"a": b"old", "there": None}, kept]
    assert lasting(Step("write", "a", written), Step("fsync", "a", written))[-1] == kept
    assert {"a": b"old", "there": None} not in lasting(Step("fsync", "a", written))


def test_a_rename_is_in_one_place_and_lasts_with_its_directory() -> None:
    moved = {"there/a": file(7, b"old"), "there": FOLDER}
    here, gone = {"a": b"old", "there": None}, {"there/a": b"old", "there": None}
    assert lasting(Step("rename", "", moved)) == [here, gone]
    assert lasting(Step("fsync", "there", moved)) == [gone]
    assert lasting(Step("fsync", ".", moved)) == [gone]


def test_a_file_that_replaced_another_without_a_sync_may_be_empty() -> None:
    replaced = BEFORE | {"a": file(8, b"new")}
    assert {"a": b"", "there": None} in lasting(Step("replace", "", replaced))
    synced = [Step("fsync", "a.tmp", BEFORE | {"a.tmp": file(8, b"new")}), Step("replace", "", replaced)]
    assert {"a": b"", "there": None} not in lasting(*synced)
    assert {tree["a"] for tree in lasting(*synced) if "a" in tree} == {b"old", b"new"}
