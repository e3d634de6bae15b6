"""The real command under `shim`, struck at one of its file operations.

done = struck("rebuild", capture, "-o", out, at=7, how="kill")
struck("rebuild", capture, "-o", out, log=log)               # not struck: the names of its events
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.warm import SHIM, Ended, Wanted, Warm

__all__ = ["AS_OTHERS_DO", "PROGRAM", "ROOT_ONLY", "SHIM", "Ended", "in_parallel", "struck", "tree"]
PROGRAM = [sys.executable, "-c", "from ng_capture_cli.main import run; run()"]
AT_ONCE = 2
# root without these privileges obeys the permissions of files
AS_OTHERS_DO = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
    if os.geteuid() == 0 and shutil.which("setpriv") is not None
    else []
)
ROOT_ONLY = os.geteuid() == 0 and not AS_OTHERS_DO


def struck(
    *arguments: str | Path, limit: int | None = None, cwd: Path | None = None, **shim: str | Path | int
) -> Ended:
    """Run `ng-capture`, as root too without its privileges over files.

    `log`, `at` and `how` are for the shim, `limit` is the greatest size of a file.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    env |= {f"NG_SHIM_{key.upper()}": str(value) for key, value in shim.items()}
    wanted = Wanted(tuple(map(str, arguments)), env, None if cwd is None else str(cwd), limit)
    return Warm.run(wanted, AS_OTHERS_DO)


def in_parallel(function: Callable[[int], None], numbers: Iterable[int]) -> None:
    """The function of each number; what it raises is raised here."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(function, numbers))


def tree(*directories: Path) -> dict[str, tuple[object, ...]]:
    """Every file and directory with its bytes and what the system says of it."""
    found = {}
    for path in sorted(path for directory in directories for path in [directory, *directory.rglob("*")]):
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (data, status.st_mode, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    return found
