"""Runs of small rollouts whose fate is known, and the document that `ng-capture health` makes of them."""

from pathlib import Path
from typing import Any

from tests.support.command import run, strict_json
from tests.support.forge import Forge, canonical

Metrics = dict[str, Any]


def healthy(rollout_id: str) -> Forge:
    """Two calls, the second of which continues the first."""
    forge = Forge(rollout_id)
    forge.root([1, 2], [3], id="a").then([4], [5], id="b")
    return forge


def broken(rollout_id: str) -> Forge:
    """Two calls; the prompt of the second is not what came before it (prefix_mismatch)."""
    forge = Forge(rollout_id)
    forge.root([1, 2], [3], id="a").broken([1, 9, 9, 4], [5], id="b")
    return forge


def write_lost(directory: Path, rollout_id: str) -> Forge:
    """One call, and another one that was announced and never recorded (capture_incomplete)."""
    forge = Forge(rollout_id)
    forge.root([1, 2], [3], id="a")
    forge.write(directory)
    (directory / f"{rollout_id}.tokens.intents").write_bytes(b"a\nlost\n")
    return forge


def write_retired(directory: Path, rollout_id: str) -> None:
    """The tombstone that stays when a rollout was handed off and dropped."""
    directory.mkdir(parents=True, exist_ok=True)
    state = healthy(rollout_id).state(frozen=True, retired=True, snapshot_id="0" * 32, indexed_size=0)
    (directory / f"{rollout_id}.tokens.state.json").write_bytes(canonical(state) + b"\n")


def write_many(directory: Path, trainable: int, masked: int) -> Path:
    """Rollouts `good-0`, `good-1`, ... and `lost-0`, ...; gives the directory back."""
    for number in range(trainable):
        healthy(f"good-{number}").write(directory)
    for number in range(masked):
        write_lost(directory, f"lost-{number}")
    return directory


def words_of(text: str) -> list[str]:
    """The words of every line: how wide the columns of a screen are is nobody's claim."""
    return [" ".join(line.split()) for line in text.splitlines()]


def document(*arguments: object, cwd: Path | None = None) -> dict[str, Any]:
    """What `health -f json` says; fails where the command could not do its work."""
    done = run("health", *arguments, "-f", "json", cwd=cwd)
    assert done.code in (0, 1), done.err
    told: dict[str, Any] = strict_json(done.out)
    return told


def metrics(*arguments: object, cwd: Path | None = None) -> Metrics:
    told: Metrics = document(*arguments, cwd=cwd)["metrics"]
    return told
