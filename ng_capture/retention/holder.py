"""One gc at a time in a directory: its own lock, which says who holds it."""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from ng_capture.errors import SurroundingsError
from ng_capture.files.locking import Busy, exclusive
from ng_capture.files.writing import make_directory
from ng_capture.retention.trash import TRASH

_LOCK = "gc.lock"


@contextlib.contextmanager
def only_one(directory: str, patience: float) -> Iterator[None]:
    """Be the only gc of a directory for the block; raises Busy that names the holder."""
    trash = Path(directory, TRASH)
    if trash.is_symlink():
        raise SurroundingsError(f"{trash}: is a link: nothing is moved where it leads")
    make_directory(trash)
    if trash.stat().st_dev != Path(directory).stat().st_dev:
        raise SurroundingsError(f"{trash}: lies on another file system: nothing can be moved there")
    path = trash / _LOCK
    if path.is_symlink():
        raise SurroundingsError(f"{path}: is a link: not followed")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(exclusive(str(path), patience))
        except Busy as error:
            holder = path.read_text("utf-8", "replace").strip() or "unknown"
            raise Busy(f"{directory}: another gc is at work: process {holder}", hint="try again later") from error
        # for a person to read: on a full disk the work that frees it goes on without
        with contextlib.suppress(OSError), open(path, "r+b") as file:
            # in place, not replaced: the file is what others wait for
            file.truncate()
            file.write(f"{os.getpid()} on {socket.gethostname()}, since {time.strftime('%F %T')}\n".encode())
        yield
