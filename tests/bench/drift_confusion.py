"""Print what `explain` takes the causes of the corpus `drift/` for: true causes by found ones. See README.md."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ng_capture.outputs.explain.breaks import Break
from tests.support.corpus import corpus_root
from tests.support.drift import Confusion, Drift, confusion


def main() -> int:
    """Read the corpus once and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=corpus_root() / "drift", help="The folder drift/ of the corpus.")
    folder = parser.parse_args().corpus
    if not (folder / "truth.jsonl").is_file():
        print(f"{folder}: no truth.jsonl there", file=sys.stderr)
        return 2
    drift = Drift(folder)
    _print("with the family's tokenizer", drift, drift.breaks_by_text)
    print()
    _print("without a tokenizer", drift, drift.breaks_by_ids)
    return 0


def _print(how: str, drift: Drift, breaks: Mapping[str, Break]) -> None:
    told = confusion(drift.broken, breaks)
    total = len(drift.broken)
    calls = {row["model_call_id"] for row in drift.broken}
    print(f"{how}: {total} broken edges")
    print(f"  cause right  {_share(told.right, total)}")
    print(f"  group right  {_share(told.right_group, total)}")
    print(f"  breaks found where none is  {len(breaks.keys() - calls)}")
    _print_table(told)


def _print_table(told: Confusion) -> None:
    """A line for each pair of causes; what is right first, of every true cause."""
    width = max(len(true) for true, _ in told.counts)
    print(f"\n  {'true cause':<{width}}     n  found")
    for (true, found), count in sorted(told.counts.items(), key=lambda item: (item[0][0], item[0][0] != item[0][1])):
        name = "(no break)" if found is None else found
        print(f"  {true:<{width}}  {count:>4}  {'=' if true == found else name}")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "0 of 0"


if __name__ == "__main__":
    sys.exit(main())
