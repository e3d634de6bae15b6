"""The pictures of the README: what the commands print, drawn by rich.

python -m tests.support.pictures        # writes fixtures/pictures/*.svg
"""

import io

from rich.console import Console
from rich.text import Text

from tests.support.command import run
from tests.support.fixtures import ROOT

FOLDER = ROOT / "pictures"
_WIDTH = 110
_PICTURES = {
    "show.svg": ("show", "fixtures/capture", "retried-turn", "--rollouts", "fixtures/rollouts.jsonl"),
    "explain.svg": (
        *("explain", "fixtures/capture", "broken-prefix", "--rollouts", "fixtures/rollouts.jsonl"),
        *("--tokenizer", "fixtures/tokenizer.json"),
    ),
}


def pictures() -> dict[str, str]:
    """Every picture by its name."""
    return {name: _drawn(name.removesuffix(".svg"), words) for name, words in _PICTURES.items()}


def _drawn(name: str, words: tuple[str, ...]) -> str:
    printed = run(*words, "--color", "always", cwd=ROOT.parent, COLUMNS=str(_WIDTH)).out
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.from_ansi(f"$ ng-capture {' '.join(words)}\n{printed}"), no_wrap=False)
    return console.export_svg(title=f"ng-capture {name}", unique_id=f"ng-capture-{name}")


def main() -> None:
    """Draw them."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
