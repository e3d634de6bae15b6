"""Two attempts at a task, and what they are exported as."""

from pathlib import Path

import pytest

from ng_capture.outputs.forms import Form
from tests.support.forge import Forge, write_rows
from tests.support.proving import Exported, written
from tests.support.tables import named


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("proof") / "store"
    rows = []
    for name, reward, first in (("7-0", 1.0, 1), ("7-1", 0.25, 21)):
        forge = Forge(name)
        experts = [[[number]] for number in range(7)]
        asked = forge.root([first, 2], [3, 11], id=f"{name}-a", weight_version=3, routed_experts=experts[:4])
        # a column holds text, whatever it is in JSON
        last = asked.then([4], [5, 6], id=f"{name}-b", weight_version="step-4", routed_experts=experts)
        forge.write(directory, raw=True)
        rows.append({**forge.row(last, reward=reward), "_ng_task_index": 7})
    write_rows(directory.parent / "rows.jsonl", rows)
    return directory


@pytest.fixture
def exported(store: Path, tmp_path: Path) -> Exported:
    """Writes the store as a format, each time in a directory of its own."""

    def write(name: str, form: Form) -> Path:
        directory = tmp_path / str(len(list(tmp_path.iterdir())))
        directory.mkdir()
        return written(store, name, form, named(directory, form))

    return write
