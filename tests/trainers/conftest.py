"""Nothing is fetched, nothing is left in a cache; a library's own warnings are its own."""

import os
import shutil
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
    # threads that wait for one another take longer than the work there is
    "OMP_NUM_THREADS": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
}

from ng_capture_cli.app import app  # noqa: E402
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
def made() -> dict[tuple[object, ...], Path]:
    """What was written by what was asked for."""
    return {}


@pytest.fixture
def export(
    store: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, made: dict[tuple[object, ...], Path]
) -> Export:
    """Rebuilds the store as a format; gives a file of the test's own, or a directory where the format is one."""

    def exported(name: str, *options: object, ending: str = "jsonl", source: Path = store) -> Path:
        asked = (name, options, ending, source)
        if asked not in made:
            made[asked] = tmp_path_factory.mktemp("made") / (name if name == "llamafactory" else f"{name}.{ending}")
            words = ("rebuild", source, "--rollouts", source.parent / "rows.jsonl", "--to", name, "-o", made[asked])
            # the command in this process, which has long loaded what it needs
            assert not app([str(word) for word in (*words, "-q", *options)], standalone_mode=False)
        copy = shutil.copytree if made[asked].is_dir() else shutil.copy
        return Path(copy(made[asked], tmp_path / made[asked].name))

    return exported
