"""The witness: answers by the specification, one history per log at any kill, and a client that notices amnesia."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

from interlock_tools.keyfiles import KeyUnusable, format_private_key, key_from_environment, load_key, load_or_create_key
from interlock_tools.receipts.checkpoint import Checkpoint, cosign, cosigned_at, parse_checkpoint, sign_checkpoint
from interlock_tools.receipts.errors import FormatError
from interlock_tools.receipts.keys import COSIGNATURE, KeySigner, VerifierKey, parse_verifier_key, verifier_key
from interlock_tools.receipts.merkle import EMPTY_ROOT, Tree, consistency_proof, leaf_hash
from interlock_tools.receipts.note import Note, parse_signature_lines
from interlock_tools.receipts.policy import parse_policy
from interlock_tools.witness import (
    WitnessAhead,
    WitnessClient,
    WitnessDisagrees,
    WitnessRefused,
    WitnessUnreachable,
    clients_of,
    gather,
)
from interlock_tools.witness.book import WitnessBook
from interlock_tools.witness.errors import WitnessUnusable
from interlock_tools.witness.server import initialise, open_witness
from interlock_tools.witness.wire import format_submission, origin_hash, parse_submission

ROOT = Path(__file__).parent.parent
LOG = KeySigner("log.example/refunds", b"l" * 32)
OTHER_LOG = KeySigner("log.example/refunds", b"m" * 32)
WITNESS = KeySigner("witness.example/a", b"a" * 32)
SILENT = KeySigner("witness.example/c", b"c" * 32)
ROUNDS = int(os.environ.get("INTERLOCK_WITNESS_KILLS", "4"))


class Log:
    """A log that can be forked: leaf n is the fork's name from ``fork`` on."""

    def __init__(self, name: str, size: int, fork: int = 0) -> None:
        self.tree = Tree()
        self.nodes: dict[tuple[int, int], bytes] = {}
        self.roots = [EMPTY_ROOT]
        for number in range(size):
            leaf = leaf_hash(f"{name if number >= fork else ''} {number}".encode())
            self.tree, new = self.tree.append(leaf)
            self.nodes.update({(node.level, node.position): node.hash for node in new})
            self.roots.append(self.tree.root)

    def prove(self, old: int, new: int) -> list[bytes]:
        return consistency_proof(old, new, lambda level, position: self.nodes[level, position])

    def note(self, size: int, *signers: KeySigner) -> Note:
        return sign_checkpoint(Checkpoint(LOG.name, size, self.roots[size]), *(signers or (LOG,)))

    def body(self, old: int, new: int, *signers: KeySigner) -> bytes:
        proof = self.prove(old, new) if 0 < old < new else []
        return format_submission(old, proof, self.note(new, *signers))


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class Answers(Folder):
    """What ``add-checkpoint`` answers, and that it remembers what it signed and nothing else."""

    def setUp(self) -> None:
        super().setUp()
        self.time_s = 1_000
        self.path = self.folder / "witness.db"
        WitnessBook.create(self.path, WITNESS)
        self.book = WitnessBook(self.path, WITNESS, lambda: self.time_s)
        self.addCleanup(lambda: self.book.close())
        self.book.add_log(str(verifier_key(LOG)))
        self.log = Log("a", 20)

    def _size(self) -> int:
        return sum(head.size for head in self.book.heads())

    def test_200_and_growth(self) -> None:
        for old, new in ((0, 3), (3, 3), (3, 4), (4, 11), (11, 20), (20, 20)):
            response = self.book.add_checkpoint(self.log.body(old, new))
            self.assertEqual(response.status, 200, response.body)
            line = response.body.decode()
            note = self.log.note(new)
            cosigned = Note(note.text, parse_signature_lines(line))
            self.assertEqual(cosigned_at(cosigned, verifier_key(WITNESS, COSIGNATURE)), self.time_s)
            self.assertEqual(self._size(), new)
            self.time_s += 1

    def test_the_empty_log(self) -> None:
        self.assertEqual(self.book.add_checkpoint(self.log.body(0, 0)).status, 200)
        self.assertEqual(self.book.add_checkpoint(self.log.body(0, 5)).status, 200)
        self.assertEqual(self.book.add_checkpoint(self.log.body(0, 0)).status, 409)

    def test_400(self) -> None:
        good = self.log.body(0, 3)
        for body in (
            b"",
            b"old 0\n",
            b"old 0\n\n",
            b"\xff",
            good.replace(b"old 0", b"new 0"),
            good.replace(b"old 0", b"old 00"),
            good.replace(b"old 0", b"old -1"),
            good.replace(b"old 0", b"old 4_2"),
            good.replace(b"old 0", "old ٤".encode()),
            good.replace(b"old 0\n", b"old 0\nAAAA\n"),
            good.replace(b"old 0\n", b"old 0\n" + b"A" * 43 + b"=\nx\n"),
            good.replace(b"old 0\n", b"old 0\n" + (b"A" * 43 + b"=\n") * 64),
            good.replace(b"old 0", b"old 4"),
            good[:-1],
            good.replace(b"\n3\n", b"\n03\n"),
            b"x" * 300_000,
        ):
            with self.subTest(body=body[:40]):
                self.assertEqual(self.book.add_checkpoint(body).status, 400)
        self.assertEqual(self._size(), 0)

    def test_403_and_404(self) -> None:
        stranger = KeySigner("log.example/other", b"s" * 32)
        unknown = sign_checkpoint(Checkpoint(stranger.name, 3, bytes(32)), stranger)
        self.assertEqual(self.book.add_checkpoint(format_submission(0, [], unknown)).status, 404)
        self.assertEqual(self.book.add_checkpoint(self.log.body(0, 3, OTHER_LOG)).status, 403)
        forged = Note(self.log.note(3).text, self.log.note(4).signatures)
        self.assertEqual(self.book.add_checkpoint(format_submission(0, [], forged)).status, 403)
        self.assertEqual(self._size(), 0)

    def test_409_says_the_size(self) -> None:
        self.assertEqual(self.book.add_checkpoint(self.log.body(2, 3)).body, b"0\n")
        self.book.add_checkpoint(self.log.body(0, 5))
        for old, new in ((0, 7), (4, 7), (6, 7), (0, 3), (3, 3), (7, 9)):
            response = self.book.add_checkpoint(self.log.body(old, new))
            self.assertEqual((response.status, response.body, response.content_type), (409, b"5\n", "text/x.tlog.size"))
        self.assertEqual(self._size(), 5)

    def test_422_and_evidence(self) -> None:
        self.book.add_checkpoint(self.log.body(0, 5))
        fork = Log("b", 20, fork=4)
        bodies = [
            fork.body(5, 5),
            fork.body(5, 9),
            format_submission(5, [], self.log.note(9)),
            format_submission(5, self.log.prove(5, 9)[:-1], self.log.note(9)),
            format_submission(5, self.log.prove(5, 9), self.log.note(5)),
        ]
        for body in bodies:
            self.assertEqual(self.book.add_checkpoint(body).status, 422)
        self.assertEqual(self.book.evidence(LOG.name)[:2], bodies[:2])
        self.assertEqual(parse_submission(self.book.evidence(LOG.name)[0]).checkpoint.root, fork.roots[5])
        self.assertEqual(self._size(), 5)

    def test_a_log_whose_keys_are_removed_is_unknown_but_remembered(self) -> None:
        self.book.add_checkpoint(self.log.body(0, 5))
        self.book.remove_log_key(str(verifier_key(LOG)))
        self.assertEqual(self.book.add_checkpoint(self.log.body(5, 6)).status, 404)
        self.book.add_log(str(verifier_key(LOG)))
        self.assertEqual(self.book.add_checkpoint(Log("b", 6).body(0, 6)).status, 409)

    def test_a_proof_from_nothing_is_refused(self) -> None:
        body = format_submission(0, [bytes(32)], self.log.note(3))
        self.assertEqual(self.book.add_checkpoint(body).status, 422)

    def test_503_when_the_clock_is_behind(self) -> None:
        self.book.add_checkpoint(self.log.body(0, 5))
        self.time_s = 999
        self.assertEqual(self.book.add_checkpoint(self.log.body(5, 6)).status, 503)
        self.time_s = 1_000
        self.assertEqual(self.book.add_checkpoint(self.log.body(5, 6)).status, 200)

    def test_503_when_it_cannot_write(self) -> None:
        self.book.add_checkpoint(self.log.body(0, 5))
        holder = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(holder.close)
        self.book._database.execute("pragma busy_timeout = 1")
        holder.execute("begin exclusive")
        self.assertEqual(self.book.add_checkpoint(self.log.body(5, 6)).status, 503)
        holder.execute("rollback")
        self.assertEqual(self.book.add_checkpoint(self.log.body(5, 6)).status, 200)

    def test_a_moved_log_is_known_by_either_key(self) -> None:
        self.book.add_checkpoint(self.log.body(0, 5))
        self.book.add_log(str(verifier_key(OTHER_LOG)))
        self.assertEqual(self.book.add_checkpoint(self.log.body(5, 6, LOG, OTHER_LOG)).status, 200)
        self.assertEqual(self.book.add_checkpoint(self.log.body(6, 7, OTHER_LOG)).status, 200)
        with self.assertRaises(FormatError):
            self.book.add_log(str(verifier_key(WITNESS, COSIGNATURE)))

    def test_two_processes_on_one_file_are_one_witness(self) -> None:
        second = WitnessBook(self.path, WITNESS, lambda: self.time_s)
        self.addCleanup(second.close)
        fork = Log("b", 20, fork=2)
        self.assertEqual(self.book.add_checkpoint(self.log.body(0, 5)).status, 200)
        self.assertEqual(second.add_checkpoint(fork.body(0, 5)).status, 409)
        self.assertEqual(second.add_checkpoint(fork.body(5, 6)).status, 422)
        self.assertEqual(second.add_checkpoint(self.log.body(5, 6)).status, 200)

    def test_random_submissions_never_make_two_histories(self) -> None:
        chance = random.Random(7)
        logs = [self.log, Log("b", 20, fork=6), Log("c", 20, fork=11)]
        signed: list[Checkpoint] = []
        for _ in range(250):
            log = chance.choice(logs)
            known = self._size()
            old = chance.choice([known, known, chance.randrange(21)])
            new = chance.choice([min(old + chance.randrange(3), 20), chance.randrange(21)])
            if self.book.add_checkpoint(log.body(old, new)).status == 200:
                signed.append(parse_checkpoint(log.note(new).text))
        self.assertGreater(len(signed), 10)
        self.assertTrue(one_history(signed, logs), signed)


def one_history(signed: list[Checkpoint], logs: list[Log]) -> bool:
    """Whether all checkpoints belong to one and the same of these logs."""
    return any(all(log.roots[point.size] == point.root for point in signed) for log in logs)


class Opening(Folder):
    def test_key_and_database_belong_together(self) -> None:
        database, key = self.folder / "w.db", self.folder / "w.key"
        text = initialise(database, key, "witness.example/a")
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
        open_witness(database, key).close()
        self.assertEqual(str(verifier_key(load_key(key), COSIGNATURE)), text)
        with self.assertRaises(WitnessUnusable):
            initialise(database, key, "witness.example/a")
        (self.folder / "other.key").write_text(format_private_key("witness.example/a", b"o" * 32))
        (self.folder / "other.key").chmod(0o600)
        with self.assertRaises(WitnessUnusable):
            open_witness(database, self.folder / "other.key")
        database.unlink()
        for action in (lambda: open_witness(database, key), lambda: initialise(database, key, "witness.example/a")):
            with self.assertRaisesRegex(WitnessUnusable, "lost"):
                action()
        self.assertFalse(database.exists(), "a lost database is never made anew")

    def test_other_files_are_refused(self) -> None:
        path = self.folder / "w.db"
        path.write_bytes(b"not a database at all, but long enough to be looked at" * 20)
        with self.assertRaises(WitnessUnusable):
            WitnessBook(path, WITNESS, lambda: 1)
        path.unlink()
        sqlite3.connect(path).close()
        path.touch()
        with self.assertRaises(WitnessUnusable):
            WitnessBook(path, WITNESS, lambda: 1)


class KeyFiles(Folder):
    def test_created_on_first_use_with_mode_0600(self) -> None:
        path = self.folder / "writer.key"
        first = load_or_create_key(path, "writer.example/1")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(load_or_create_key(path, "writer.example/1").public_key, first.public_key)
        self.assertEqual([item.name for item in self.folder.iterdir()], ["writer.key"])
        self.assertNotIn("PRIVATE", repr(first))

    def test_refused_keys(self) -> None:
        path = self.folder / "writer.key"
        with self.assertRaisesRegex(KeyUnusable, "cannot be read"):
            load_key(path)
        load_or_create_key(path, "writer.example/1")
        with self.assertRaisesRegex(KeyUnusable, "not of 'other'"):
            load_key(path, "other")
        path.chmod(0o640)
        with self.assertRaisesRegex(KeyUnusable, "chmod 600"):
            load_key(path)
        secret = path.read_text()
        for text in ("", "PRIVATE+KEY+x", secret.replace("writer.example/1", "writer.example/2"), secret[:-6], "\xff"):
            path.write_text(text)
            path.chmod(0o600)
            with self.assertRaises(KeyUnusable) as caught:
                load_key(path)
            self.assertNotIn(secret.strip()[-20:], str(caught.exception))
        with self.assertRaises(KeyUnusable):
            load_or_create_key(self.folder / "missing" / "w.key", "w")

    def test_from_the_environment(self) -> None:
        os.environ["INTERLOCK_TEST_KEY"] = format_private_key("writer.example/1", b"w" * 32)
        self.addCleanup(os.environ.pop, "INTERLOCK_TEST_KEY", None)
        self.assertEqual(key_from_environment("INTERLOCK_TEST_KEY").name, "writer.example/1")
        with self.assertRaises(KeyUnusable):
            key_from_environment("INTERLOCK_TEST_NO_KEY")

    def test_the_published_private_key(self) -> None:
        # From the documentation of the Go signed-note tools.
        path = self.folder / "k"
        path.write_text("PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz\n")
        path.chmod(0o600)
        self.assertEqual(
            str(verifier_key(load_key(path))), "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
        )

    def test_two_at_once_get_one_key(self) -> None:
        path = self.folder / "k"
        found: list[bytes] = []
        threads = [
            threading.Thread(target=lambda: found.append(load_or_create_key(path, "w").public_key)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual((len(found), len(set(found))), (8, 1))


SERVER = """
import os, signal, sys, time
from interlock_tools.witness.server import open_witness, serve

database, key, dies = sys.argv[1:4]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

book = open_witness(database, key, die if dies == "before_commit" else lambda: int(time.time()))

class Signer:
    name, public_key = book.signer.name, book.signer.public_key
    def sign(self, message, inner=book.signer):
        if dies == "before_signing":
            die()
        signature = inner.sign(message)
        if dies == "after_signing":
            die()
        return signature

book.signer = Signer()
serve(book, ready=lambda url: print(url, flush=True), logs=sys.argv[4:])
"""


class Served(Folder):
    """A real server process."""

    key: VerifierKey

    def setUp(self) -> None:
        super().setUp()
        self.database, self.key_file = self.folder / "w.db", self.folder / "w.key"
        self.key = parse_verifier_key(initialise(self.database, self.key_file, "witness.example/a"), (COSIGNATURE,))

    @contextlib.contextmanager
    def server(self, dies: str = "never") -> Iterator[tuple[subprocess.Popen[str], WitnessClient]]:
        arguments = [str(self.database), str(self.key_file), dies, str(verifier_key(LOG))]
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        try:
            assert process.stdout is not None
            yield process, WitnessClient(process.stdout.readline().strip(), self.key, timeout_s=30)
        finally:
            process.kill()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()

    def test_client_and_server(self) -> None:
        log, fork = Log("a", 20), Log("b", 20, fork=4)
        with self.server() as (process, client):
            self.assertIsNone(client.seen(LOG.name))
            lines = client.cosign(log.note(5), log.prove)
            self.assertIsNotNone(cosigned_at(log.note(5).with_signatures(lines), self.key))
            client.cosign(log.note(9), log.prove, 5)
            client.cosign(log.note(12), log.prove, 3)
            seen = client.seen(LOG.name)
            assert seen is not None
            self.assertEqual(parse_checkpoint(seen.text).size, 12)
            with self.assertRaises(WitnessAhead) as ahead:
                client.cosign(log.note(7), log.prove, 7)
            self.assertEqual((ahead.exception.seen, ahead.exception.held), (12, 7))
            for size in (12, 15):
                with self.assertRaises(WitnessDisagrees):
                    client.cosign(fork.note(size), fork.prove, 12)
            with self.assertRaises(WitnessRefused) as refused:
                client.cosign(log.note(15, OTHER_LOG), log.prove, 12)
            self.assertEqual(refused.exception.status, 403)
            process.send_signal(signal.SIGTERM)
            self.assertIn(process.wait(30), (0, -signal.SIGTERM))
            with self.assertRaises(WitnessUnreachable):
                client.cosign(log.note(13), log.prove, 12)

    def test_gathering_for_a_policy(self) -> None:
        log, copy = Log("a", 20), Log("b", 20, fork=4)
        away = verifier_key(WITNESS, COSIGNATURE)
        with self.server() as (_, client):
            policy = parse_policy(
                f"log {verifier_key(LOG)}\nwitness here {client.key} {client.url}\n"
                f"witness away {away} http://127.0.0.1:1/\nwitness silent {verifier_key(SILENT, COSIGNATURE)}\n"
                "group one any here away silent\nquorum one\n"
            )
            clients = clients_of(policy)
            self.assertEqual(set(clients), {"here", "away"})
            gathered = gather(log.note(9), clients, log.prove, {})
            self.assertEqual((gathered.sizes, set(gathered.errors), gathered.amnesia), ({"here": 9}, {"away"}, None))
            self.assertTrue(policy.met_by(set(gathered.sizes)))
            self.assertIsNotNone(cosigned_at(gathered.note, client.key))
            restored = gather(log.note(6), clients, log.prove, {"here": 6})
            self.assertIsInstance(restored.amnesia, WitnessAhead)
            self.assertFalse(policy.met_by(set(restored.sizes)))
            self.assertIsInstance(gather(copy.note(12), clients, copy.prove, {"here": 9}).amnesia, WitnessDisagrees)

    def test_killed_at_each_point_of_an_answer(self) -> None:
        log, fork = Log("a", 20), Log("b", 20, fork=2)
        for size, dies in ((5, "before_commit"), (5, "before_signing"), (9, "after_signing")):
            with self.subTest(dies):
                with self.server(dies) as (process, client):
                    with self.assertRaises(WitnessUnreachable):
                        client.cosign(log.note(size), log.prove)
                    self.assertEqual(process.wait(30), -signal.SIGKILL)
                book = open_witness(self.database, self.key_file)
                self.addCleanup(book.close)
                remembered = sum(head.size for head in book.heads())
                self.assertEqual(remembered, 0 if dies == "before_commit" else size)
                if remembered:  # a signature may exist: the other history is refused from now on, ours is not
                    self.assertEqual(book.add_checkpoint(fork.body(remembered, remembered)).status, 422)
                    self.assertEqual(book.add_checkpoint(log.body(remembered, remembered)).status, 200)

    def test_killed_at_random_while_two_histories_are_submitted(self) -> None:
        """Set INTERLOCK_WITNESS_KILLS for more rounds."""
        seed = random.SystemRandom().randrange(2**31)
        chance = random.Random(seed)
        logs = [Log("a", 200, fork=3), Log("b", 200, fork=3)]
        signed: list[Checkpoint] = []
        for _ in range(ROUNDS):
            with self.server() as (process, client):
                fuse = threading.Semaphore(0)
                failed: list[BaseException] = []
                threads = [
                    threading.Thread(target=_submit, args=(client, log, signed, fuse, chance.randrange(2**31), failed))
                    for log in logs
                ]
                for thread in threads:
                    thread.start()
                for _ in range(chance.randrange(2, 25)):
                    fuse.acquire(timeout=30)
                process.kill()
                for thread in threads:
                    thread.join(60)
                    self.assertFalse(thread.is_alive())
                self.assertEqual(failed, [], f"seed {seed}")
        self.assertGreater(len(signed), ROUNDS)
        self.assertTrue(one_history(signed, logs), f"seed {seed}: {[(p.size, p.root.hex()[:6]) for p in signed]}")


def _submit(
    client: WitnessClient,
    log: Log,
    signed: list[Checkpoint],
    fuse: threading.Semaphore,
    seed: int,
    failed: list[BaseException],
) -> None:
    """Submit growing checkpoints of one fork until the server is gone; stubbornly, also when it is refused."""
    chance = random.Random(seed)
    size = 0
    for _ in range(400):
        size = min(size + chance.randrange(4), 200)
        try:
            client.cosign(log.note(size), log.prove, chance.choice([size, max(size - 1, 0)]))
            signed.append(parse_checkpoint(log.note(size).text))
        except WitnessAhead as ahead:
            size = ahead.seen
        except WitnessDisagrees:
            pass
        except WitnessUnreachable:
            return
        except BaseException as error:
            failed.append(error)
            return
        finally:
            fuse.release()


class OddAnswers(unittest.TestCase):
    """What a client makes of a witness that answers nonsense, or lies."""

    answer: ClassVar[tuple[int, dict[str, str], bytes]]

    def setUp(self) -> None:
        case = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                status, headers, body = case.answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body) + int(headers.get("cut", "0"))))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, *arguments: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join, 30)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.client = WitnessClient(self.url, verifier_key(WITNESS, COSIGNATURE))
        self.log = Log("a", 8)

    def test_an_answer_that_was_cut_off_is_none(self) -> None:
        line = f"{cosign(self.log.note(5).text, WITNESS, 1)}\n".encode()
        for status, body in ((200, line[:-1]), (200, line), (409, b"3"), (422, b"")):
            with self.subTest(status), self.assertRaises(WitnessUnreachable):
                self._ask(status, body, cut="1")

    def _ask(self, status: int, body: bytes = b"", **headers: str) -> None:
        type(self).answer = (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)
        self.client.cosign(self.log.note(5), self.log.prove, 3)

    def test_a_cosignature_is_believed_only_if_it_verifies(self) -> None:
        other = KeySigner("witness.example/a", b"o" * 32)
        for body in (
            b"",
            b"\n",
            b"ok\n",
            b"\xff\n",
            f"{cosign(self.log.note(4).text, WITNESS, 1)}\n".encode(),
            f"{cosign(self.log.note(5).text, other, 1)}\n".encode(),
            f"{cosign(self.log.note(5).text, WITNESS, 1)}".encode(),
        ):
            with self.subTest(body=body), self.assertRaises(WitnessRefused):
                self._ask(200, body)
        self._ask(200, f"{cosign(self.log.note(5).text, WITNESS, 1)}\n".encode())

    def test_sizes(self) -> None:
        for body in (b"", b"4", b"04\n", b"-1\n", b"4_2\n", "٤\n".encode(), b"x\n", b"9" * 30 + b"\n"):
            with self.subTest(body=body), self.assertRaises(WitnessRefused):
                self._ask(409, body)
        with self.assertRaises(WitnessAhead):
            self._ask(409, b"6\n")
        with self.assertRaises(WitnessDisagrees):
            self._ask(409, b"3\n")
        with self.assertRaises(WitnessDisagrees):
            self._ask(409, b"4\n")

    def test_come_again(self) -> None:
        for status in (429, 500, 503):
            with self.assertRaises(WitnessUnreachable) as caught:
                self._ask(status, Retry_After="7")
            self.assertEqual(caught.exception.retry_after_s, 7)
        with self.assertRaises(WitnessUnreachable) as caught:
            self._ask(503, Retry_After="Tue, 01 Dec 2026 00:00:00 GMT")
        self.assertIsNone(caught.exception.retry_after_s)

    def test_refusals_and_redirects(self) -> None:
        for status in (301, 302, 307, 400, 403, 404, 418):
            with self.subTest(status), self.assertRaises(WitnessRefused):
                self._ask(status, Location=f"{self.url}/elsewhere")

    def test_a_shown_head_must_be_cosigned(self) -> None:
        type(self).answer = (200, {}, str(self.log.note(5)).encode())
        with self.assertRaises(WitnessRefused):
            self.client.seen(LOG.name)
        type(self).answer = (404, {}, b"")
        self.assertIsNone(self.client.seen(LOG.name))
        self.assertEqual(len(origin_hash(LOG.name)), 64)

    def test_urls(self) -> None:
        with self.assertRaises(ValueError):
            WitnessClient("file:///etc/passwd", verifier_key(WITNESS, COSIGNATURE))


if __name__ == "__main__":
    unittest.main()
