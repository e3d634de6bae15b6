"""What time it is in a file system, and whether its locks prove anything."""

import sys
import time
from pathlib import Path

import pytest

from ng_capture.retention.surroundings import Mount, file_system_now, mount_of
from tests.support.retention import CAN_MOUNT, mounted, no_file_can_be_opened

ROOT = "20 1 0:1 / / rw,relatime shared:1 - ext4 /dev/sda rw"
SAY = "import sys; from ng_capture.retention.surroundings import mount_of; print(ascii(mount_of(sys.argv[1])))"
mounting = pytest.mark.skipif(not CAN_MOUNT, reason="no mount namespace may be made here")


def test_the_time_is_that_of_a_file_made_now_and_none_is_left(tmp_path: Path) -> None:
    before = tmp_path.stat()
    now = file_system_now(str(tmp_path))
    (tmp_path / "probe").touch()
    assert abs(now - (tmp_path / "probe").stat().st_mtime) < 5
    (tmp_path / "probe").unlink()
    assert list(tmp_path.iterdir()) == [] and before.st_ino == tmp_path.stat().st_ino


@pytest.mark.parametrize("place", ["/proc", "nowhere"])
def test_where_no_file_can_be_made_it_is_the_machines_time(place: str, tmp_path: Path) -> None:
    assert abs(file_system_now(str(tmp_path / place)) - time.time()) < 5


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "lustre", "9p", "ceph", "fuse.sshfs", "fuse.gcsfuse"])
def test_a_network_file_system_is_one(kind: str) -> None:
    assert Mount("/x", kind).network


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "fuse", "fuse.ntfs-3g", "fuseblk"])
def test_a_local_file_system_is_none(kind: str) -> None:
    assert not Mount("/x", kind).network


def test_proc_is_a_mount_of_its_own_kind() -> None:
    assert mount_of("/proc") == Mount("/proc", "proc") == mount_of("/proc/self")


def test_a_directory_lies_in_the_mount_that_it_is_below(tmp_path: Path) -> None:
    found = mount_of(str(tmp_path))
    assert found is not None and str(tmp_path.resolve()).startswith(found.place)


def test_a_link_lies_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc")
    assert mount_of(str(tmp_path / "link")) == Mount("/proc", "proc")


def test_where_the_system_does_not_tell_there_is_no_mount(tmp_path: Path) -> None:
    with no_file_can_be_opened():
        assert mount_of(str(tmp_path)) is None


def said(tmp_path: Path, place: str, *lines: str) -> str:
    """What is found for a place below these mounts."""
    done = mounted(tmp_path, "".join(f"{line}\n" for line in (ROOT, *lines)), sys.executable, "-c", SAY, place)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def line_of(place: str, kind: str = "nfs4") -> str:
    """A line as the kernel writes it: blanks and backslashes as octal numbers, everything else as it is."""
    told = "".join(f"\\{ord(char):03o}" if char in " \t\n\\" else char for char in place)
    return f"30 20 0:40 / {told} rw,relatime shared:7 master:1 - {kind} server:/data rw,vers=4.2"


@mounting
@pytest.mark.parametrize(
    "name", ["data", "my data", "back\\slash", "tab\tted", "données", "\u77f3", "\udce9"], ids=ascii
)
def test_a_mount_is_found_whatever_its_name(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    place.mkdir()
    assert said(tmp_path, str(place), line_of(str(place))) == ascii(Mount(str(place), "nfs4"))


@mounting
def test_a_mount_elsewhere_with_a_name_that_is_no_utf8_is_no_obstacle(tmp_path: Path) -> None:
    assert said(tmp_path, str(tmp_path), line_of("/mnt/\udce9")) == ascii(Mount("/", "ext4"))


@mounting
def test_the_deepest_mount_counts_and_of_equal_ones_the_last(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    lines = [line_of(str(deep)), line_of(str(tmp_path), "xfs"), line_of(str(deep), "fuse.sshfs")]
    assert said(tmp_path, str(deep), *lines) == ascii(Mount(str(deep), "fuse.sshfs"))


@mounting
def test_a_neighbour_with_the_same_beginning_is_another_place(tmp_path: Path) -> None:
    (tmp_path / "data-2").mkdir()
    assert said(tmp_path, str(tmp_path / "data-2"), line_of(str(tmp_path / "data"))) == ascii(Mount("/", "ext4"))


@mounting
def test_no_mount_at_all_is_none(tmp_path: Path) -> None:
    done = mounted(tmp_path, "", sys.executable, "-c", SAY, tmp_path)
    assert done.stdout.strip() == "None", done.stderr
