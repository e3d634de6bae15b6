"""Nothing is fetched, nothing is left in a cache; a library's own warnings are its own."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

_CACHE = tempfile.TemporaryDirectory(prefix="ng-capture-trainers-")
os.environ |= {
    "HF_HOME": _CACHE.name,
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "TOKENIZERS_PARALLELISM": "false",
    "TRL_EXPERIMENTAL_SILENCE": "1",
}

from tests.support.command import run  # noqa: E402
from tests.trainers.captured import write_store  # noqa: E402

Export = Callable[..., Path]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rollouts of `captured.py`, and `rows.jsonl` beside them."""
    directory = tmp_path_factory.mktemp("captured") / "store"
    write_store(directory)
    return directory


@pytest.fixture(scope="session")
def made() -> dict[tuple[object, ...], bytes]:
    """Files by what was asked for."""
    return {}


@pytest.fixture
def export(store: Path, tmp_path: Path, made: dict[tuple[object, ...], bytes]) -> Export:
    """Rebuilds the store as a format; gives a file of the test's own."""

    def exported(name: str, *options: object, ending: str = "jsonl", source: Path = store) -> Path:
        out = tmp_path / f"{name}.{ending}"
        asked = (name, options, ending, source)
        if asked not in made:
            done = run("rebuild", source, "--rollouts", source.parent / "rows.jsonl", "--to", name, "-o", out, *options)
            assert done.code == 0, done.err
            made[asked] = out.read_bytes()
        out.write_bytes(made[asked])
        return out

    return exported
