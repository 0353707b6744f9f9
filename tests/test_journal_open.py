"""Opening a journal: URLs, and every reason not to, told before anything is sent."""

from __future__ import annotations

import os
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from journal_support import JournalCase

from interlock_tools.core.entries import Kind
from interlock_tools.errors import JournalUnusable
from interlock_tools.journal import clock, filesystems
from interlock_tools.journal import open as opening
from interlock_tools.journal.clock import SystemClock
from interlock_tools.journal.open import open_journal
from interlock_tools.journal.sqlite import SqliteJournal


class TestUrls(JournalCase):
    def test_paths_and_sqlite_urls_name_the_same_file(self) -> None:
        first = open_journal(self.path)
        self.addCleanup(first.close)
        self.story(first).append(Kind.PROPOSED)
        for url in (str(self.path), f"sqlite://{self.path}", f"sqlite:///{self.path}"):
            with self.subTest(url):
                journal = open_journal(url)
                self.addCleanup(journal.close)
                self.assertEqual((journal.url, len(journal.effects())), (url.removeprefix("sqlite://"), 1))

    def test_relative_paths(self) -> None:
        before = Path.cwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        (self.folder / "sub").mkdir()
        for name in ("refunds.db", "sub/x.db", "with space.db", "100%25.db", "é.db"):
            journal = open_journal(name)
            self.addCleanup(journal.close)
            self.assertTrue((self.folder / name).exists(), name)

    def test_escapes_in_a_url(self) -> None:
        journal = open_journal(f"sqlite://{self.folder}/a%20b.db")
        self.addCleanup(journal.close)
        self.assertTrue((self.folder / "a b.db").exists())

    def test_urls_that_name_no_journal(self) -> None:
        for url in ("mysql://host/db", "sqlite://refunds.db", "sqlite:///tmp/x.db?mode=ro", "http://host/x"):
            with self.subTest(url), self.assertRaises(JournalUnusable):
                open_journal(url)

    def test_postgresql_without_its_driver(self) -> None:
        missing = ImportError("No module named 'psycopg'", name="psycopg")
        with (
            mock.patch.object(opening, "import_module", side_effect=missing),
            self.assertRaisesRegex(JournalUnusable, r"psycopg.*pip install 'interlock-tools\[postgres\]'"),
        ):
            open_journal("postgresql://host/db")


class TestUnusable(JournalCase):
    def refused(self, path: Path | str, words: str) -> None:
        with self.assertRaisesRegex(JournalUnusable, words):
            SqliteJournal(path)

    def test_memory(self) -> None:
        for name in (":memory:", "", "file::memory:?cache=shared"):
            self.refused(name, "must outlive its process")

    def test_a_path_that_no_file_has(self) -> None:
        for name in ("a\0b", "sqlite:///a%00b", "a" * 5000):
            with self.subTest(name=name[:20]), self.assertRaises(JournalUnusable):
                open_journal(name)

    def test_no_directory(self) -> None:
        self.refused(self.folder / "missing" / "x.db", "create it first")

    def test_a_directory(self) -> None:
        self.refused(self.folder, "is a directory")

    def test_not_a_database(self) -> None:
        self.path.write_text("name,amount\n" * 1000)
        self.refused(self.path, "not a SQLite database, or it is damaged.*left as it is")
        self.assertEqual(self.path.read_text(), "name,amount\n" * 1000)

    def test_a_damaged_journal(self) -> None:
        journal = self.journal()
        for number in range(100):
            self.story(journal, f"{number}").append(Kind.PROPOSED)
        journal.close()
        content = bytearray(self.path.read_bytes())
        content[100:2000] = b"\xff" * 1900
        self.path.write_bytes(content)
        self.refused(self.path, "damaged")

    def test_a_page_that_is_damaged_is_reported_when_it_is_read(self) -> None:
        journal = self.journal()
        journal.append([self.story(journal, f"{number}").write(Kind.PROPOSED) for number in range(300)])
        journal.close()
        content = bytearray(self.path.read_bytes())
        for page in range(10, len(content) // 4096):
            content[page * 4096 : page * 4096 + 200] = b"\xff" * 200
        self.path.write_bytes(content)
        with self.assertRaisesRegex(JournalUnusable, "damaged.*backup"):
            self.journal().effects(limit=1000)

    def test_a_network_filesystem(self) -> None:
        mounts = self.folder / "mountinfo"
        for kind in ("nfs4", "cifs", "9p", "virtiofs", "fuse.sshfs", "fuse.unheard-of", "fuse", "lustre", "ceph"):
            with self.subTest(kind):
                mounts.write_text(
                    f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / {self.folder} rw,x shared:1 - {kind} server:/x rw\n"
                )
                with mock.patch.object(filesystems, "_MOUNTS", mounts):
                    self.refused(self.path, rf"on {kind} \(mounted at {self.folder}\).*local disk.*postgresql://")
                self.assertFalse(self.path.exists())

    def test_a_file_with_two_names(self) -> None:
        """Each name would have a log and sessions of its own."""
        self.journal().close()
        (self.folder / "other.db").hardlink_to(self.path)
        self.refused(self.path, "another name elsewhere")
        (self.folder / "other.db").unlink()
        mounts = self.folder / "mountinfo"
        mounts.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 8:1 /x {self.path} rw - ext4 /dev/sda rw\n")
        with mock.patch.object(filesystems, "_MOUNTS", mounts):
            self.refused(self.path, "mounted by itself.*mount its directory")
        self.journal()

    def test_locks_that_exclude_nobody(self) -> None:
        with mock.patch("fcntl.flock", lambda fd, how: None):
            self.refused(self.path, "locks do not exclude")
        self.assertFalse(self.path.exists())

    def test_a_directory_that_cannot_be_written(self) -> None:
        self.journal().close()
        readable = self.folder / "read only"
        readable.mkdir(0o555)
        self.path.chmod(0o444)
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        for path in (readable / "x.db", self.path):
            self.assertRegex(self.opened_by_nobody(path), "JournalUnusable: .*(cannot be written|cannot be made)")

    def opened_by_nobody(self, path: Path) -> str:
        """Open a journal as a user without rights, in a forked child, and return what that raised."""
        read_fd, write_fd = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                if os.getuid() == 0:
                    os.setuid(65534)
                SqliteJournal(path)
            except Exception as error:
                os.write(write_fd, f"{type(error).__name__}: {error}".encode())
            finally:
                os._exit(0)
        os.close(write_fd)
        os.waitpid(pid, 0)
        with os.fdopen(read_fd) as words:
            return words.read()


class TestFilesystems(unittest.TestCase):
    MOUNTS = (
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "30 22 0:30 / /srv/share rw - nfs4 server:/x rw\n"
        "31 22 0:31 / /srv/with\\040space rw master:3 propagate_from:2 - tmpfs tmpfs rw\n"
        "32 30 8:2 / /srv/share/local rw - xfs /dev/sdb rw\n"
        "33 22 0:33 / /mnt rw - tmpfs tmpfs rw\n"
        "34 33 0:34 / /mnt rw - cifs //server/x rw\n"
    )

    def test_the_innermost_mount_counts_and_the_later_of_two(self) -> None:
        for folder, expected in (
            ("/", ("/", "ext4")),
            ("/srv", ("/", "ext4")),
            ("/srv/share", ("/srv/share", "nfs4")),
            ("/srv/sharedata", ("/", "ext4")),
            ("/srv/share/a/b", ("/srv/share", "nfs4")),
            ("/srv/share/local/c", ("/srv/share/local", "xfs")),
            ("/srv/with space/d", ("/srv/with space", "tmpfs")),
            ("/mnt/x", ("/mnt", "cifs")),
        ):
            self.assertEqual(filesystems.filesystem_of(Path(folder), self.MOUNTS), expected)

    def test_an_unintelligible_table(self) -> None:
        self.assertEqual(filesystems.filesystem_of(Path("/x"), "junk\n\n"), ("", "unknown"))


class TestClock(JournalCase):
    def test_it_reads_the_kernels_clocks(self) -> None:
        first = SystemClock().now()
        second = SystemClock().now()
        self.assertEqual(first.boot, clock.BOOT_ID.read_text().strip())
        self.assertEqual(first.boot, second.boot)
        self.assertLessEqual(first.boottime_ms, second.boottime_ms)

    def test_a_containers_own_time_is_taken_back(self) -> None:
        offsets = self.folder / "offsets"
        real = SystemClock().now().boottime_ms
        offsets.write_text("monotonic 5 0\nboottime 86400 500000000\n")
        with mock.patch.object(clock, "TIME_OFFSETS", offsets):
            shifted = SystemClock().now().boottime_ms
        self.assertAlmostEqual(real - shifted, 86_400_500, delta=60_000)

    def test_a_kernel_that_does_not_name_its_boot(self) -> None:
        for content in (None, ""):
            missing = self.folder / f"boot {content}"
            if content is not None:
                missing.write_text(content)
            with mock.patch.object(clock, "BOOT_ID", missing), self.assertRaisesRegex(JournalUnusable, "boot"):
                self.journal()


if __name__ == "__main__":
    unittest.main()
