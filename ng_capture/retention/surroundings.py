"""What a cleaner must know of the file system: what time it is there, and whether its locks can be trusted."""

import os
import re
import time
from pathlib import Path
from typing import NamedTuple

_NETWORK = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "ocfs2",
        "orangefs",
        "panfs",
        "vboxsf",
        "virtiofs",
        "wekafs",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    }
)
_LOCAL_FUSE = frozenset(
    {
        "fuse.bindfs",
        "fuse.encfs",
        "fuse.fuse-overlayfs",
        "fuse.gocryptfs",
        "fuse.lxcfs",
        "fuse.mergerfs",
        "fuse.ntfs",
        "fuse.ntfs-3g",
        "fuse.zfs",
    }
)
"""File systems of user space are mounts of somebody's store, but for these."""


# how the system spells blanks in the places of its mounts
_OCTAL = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """Where a file system is mounted, and its type."""

    place: str
    kind: str

    @property
    def network(self) -> bool:
        """True for a file system whose locks other machines need not see."""
        in_user_space = self.kind.startswith("fuse.")
        return self.kind in _NETWORK or (in_user_space and self.kind not in _LOCAL_FUSE)


def file_system_now(directory: str) -> float:
    """The file system's own time, in seconds since 1970 (promise 8): that of a file without a name, made and let go.

    Where a file system knows no such files, the machine's time.
    """
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except (OSError, AttributeError):
        return time.time()
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)


def mount_of(directory: str) -> Mount | None:
    """The mount that a directory lies in, None where the system does not tell."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().split(b"\n")
    except OSError:
        return None
    here = os.path.realpath(directory)
    found: Mount | None = None
    for line in filter(None, lines):
        left, _, right = line.partition(b" - ")
        place = os.fsdecode(_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), left.split(b" ")[4]))
        within = here == place or here.startswith(place.rstrip("/") + "/")
        # the last of equal ones lies on top
        if within and (found is None or len(place) >= len(found.place)):
            found = Mount(place, os.fsdecode(right.split(b" ")[0]))
    return found
