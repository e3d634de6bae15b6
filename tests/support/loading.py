"""What a command loads while it runs."""

import subprocess
import sys
from pathlib import Path

from tests.support.command import COMMAND

TOKENIZER_LIBRARIES = frozenset({"transformers", "tokenizers", "sentencepiece", "jinja2", "numpy", "huggingface_hub"})


def loaded_by(*arguments: object, codes: tuple[int, ...] = (0, 1)) -> set[str]:
    """The packages that a command has loaded when it ends with one of these codes; run in the repository."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", COMMAND, *map(str, arguments)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "typer" in loaded and done.returncode in codes, done.stderr[-500:]
    return loaded
