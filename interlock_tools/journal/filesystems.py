"""Refuses places where a journal could not keep its word: no locks that tell the truth, or no writing."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from pathlib import Path

from ..errors import JournalUnusable

# fmt: off
NETWORK = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "afs",
        "coda", "ceph", "glusterfs", "lustre", "gpfs", "gfs", "gfs2", "ocfs2", "beegfs", "beegfs_nodev",
        "orangefs", "pvfs2", "panfs", "davfs", "acfs"
    }
)
"""Filesystems that several kernels share. Locks, shared memory or both lie there."""

LOCAL_FUSE = frozenset(
    {
        "fuseblk", "fuse.mergerfs", "fuse.gocryptfs", "fuse.encfs", "fuse.cryfs", "fuse.bindfs",
        "fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.exfat", "fuse.zfs", "fuse.securefs"
    }
)
"""Filesystems in user space that are known to be local. All others are refused: most are network storage."""
# fmt: on

_MOUNTS = Path("/proc/self/mountinfo")


def require_safe(path: Path, directory: Path) -> None:
    """Check that the database at ``path`` and the sessions in ``directory`` can be relied on.

    Raises:
        JournalUnusable: read-only, on a network filesystem, or where ``flock`` does not exclude.
    """
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        links = path.stat().st_nlink if path.exists() else 1
    except OSError as error:
        raise JournalUnusable(f"{path}: cannot tell what it is on ({error}); mount /proc") from error
    mount, kind = filesystem_of(path, mounts)
    if mount == str(path) or links > 1:
        raise JournalUnusable(
            f"{path} has another name elsewhere (a hard link, or it is mounted by itself into a container), so that "
            "its write-ahead log and its sessions would lie in two places. Use one name, and mount its directory."
        )
    if kind in NETWORK or (kind.startswith("fuse") and kind not in LOCAL_FUSE):
        raise JournalUnusable(
            f"{path} is on {kind} (mounted at {mount}), where several machines may share files and locks cannot be "
            "trusted, so that a live sender could be taken for dead. Put the journal on a local disk, or use "
            "postgresql://… where agents run on several hosts."
        )
    _require_writable(path, directory)
    _require_flock(directory)


def filesystem_of(place: Path, mountinfo: str) -> tuple[str, str]:
    """Return the mount point that a file or folder (a real path) lies under, and the type of its filesystem."""
    best, kind = "", "unknown"
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) < 7 or "-" not in fields:
            continue
        mount = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        inside = mount == "/" or str(place) == mount or str(place).startswith(mount + "/")
        if inside and len(mount) >= len(best):  # the later of two mounts at one place covers the earlier
            best, kind = mount, fields[fields.index("-") + 1]
    return best, kind


def _require_writable(path: Path, directory: Path) -> None:
    try:
        directory.mkdir(exist_ok=True)
        writable = os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))
    except OSError as error:
        raise JournalUnusable(f"{directory} cannot be made ({error.strerror}); the journal needs it") from error
    if not writable:
        raise JournalUnusable(f"{path} cannot be written; a journal needs to write the file and its directory")


def _require_flock(directory: Path) -> None:
    """Try out that two openings of one file exclude each other."""
    probe = directory / f"probe-{secrets.token_hex(8)}"
    fds: list[int] = []
    try:
        fds.append(os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        fds.append(os.open(probe, os.O_RDWR | os.O_CLOEXEC))
        fcntl.flock(fds[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(fds[1], fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return
    except OSError as error:
        raise JournalUnusable(f"{directory}: files cannot be written and locked there ({error.strerror})") from error
    finally:
        for fd in fds:
            os.close(fd)
        probe.unlink(missing_ok=True)
    raise JournalUnusable(f"{directory}: locks do not exclude each other there; put the journal on a local disk")
