"""Our checkpoints in front of witnesses that others wrote, and our notes in front of others' verifiers.

The peers need Python >= 3.12 and stay out of this project's environment. To run
this: make one with ``pip install aics-witness witness-log`` and name its Python
in INTERLOCK_PEER_PYTHON. Otherwise the tests are skipped, and say so.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interlock_tools import Gate, RecordsMissing, parse_policy, verify
from interlock_tools.receipts import Word
from interlock_tools.receipts.checkpoint import Checkpoint, cosign, cosigned_at, parse_checkpoint, sign_checkpoint
from interlock_tools.receipts.keys import COSIGNATURE, NOTE_SIGNATURE, KeySigner, parse_verifier_key, verifier_key
from interlock_tools.receipts.merkle import EMPTY_ROOT, Tree, consistency_proof, inclusion_proof, leaf_hash
from interlock_tools.receipts.note import Note
from interlock_tools.sealing import Keys
from interlock_tools.witness import WitnessAhead, WitnessClient, WitnessDisagrees, WitnessRefused
from interlock_tools.witness.book import WitnessBook
from interlock_tools.witness.wire import parse_submission

PEER = os.environ.get("INTERLOCK_PEER_PYTHON", "")
HOW = "set INTERLOCK_PEER_PYTHON to a Python >= 3.12 that has aics-witness and witness-log"
LOG = KeySigner("log.example/refunds", b"l" * 32)
WITNESS = KeySigner("witness.example/a", b"a" * 32)


class Log:
    """A log of a few leaves; ``fork`` names another history from leaf 4 on."""

    def __init__(self, fork: str = "") -> None:
        self.tree = Tree()
        self.nodes: dict[tuple[int, int], bytes] = {}
        self.roots = [EMPTY_ROOT]
        self.leaves = [f"{fork if number >= 4 else ''}{number}".encode() for number in range(13)]
        for leaf in self.leaves:
            self.tree, new = self.tree.append(leaf_hash(leaf))
            self.nodes.update({(node.level, node.position): node.hash for node in new})
            self.roots.append(self.tree.root)

    def read(self, level: int, position: int) -> bytes:
        return self.nodes[level, position]

    def prove(self, old: int, new: int) -> list[bytes]:
        return consistency_proof(old, new, self.read)

    def note(self, size: int) -> Note:
        return sign_checkpoint(Checkpoint(LOG.name, size, self.roots[size]), LOG)


WITNESS_LOG = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
import witness_log

service = witness_log.WitnessService.new("witness.example/peer", b"p" * 32)
service.add_log(sys.argv[1], sys.argv[2])

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        status, kind, answer = service.handle_add_checkpoint_http(body)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer.encode())))
        self.end_headers()
        self.wfile.write(answer.encode())
    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
print(service.vkey(), f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""

AICS_WITNESS = """
import io, re, socket, subprocess, sys
folder, origin, key = sys.argv[1:4]
config = f"{folder}/witness.json"
run = [sys.executable, "-m", "aics_witness"]
init = [*run, "init", "-c", config, "--name", "witness.example/peer"]
made = subprocess.run(init, check=True, capture_output=True, text=True)
subprocess.run([*run, "add-log", "-c", config, "--origin", origin, "--vkey", key], check=True, capture_output=True)
vkey = next(word for word in made.stdout.split() if word.startswith("witness.example/peer+"))
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
server = subprocess.Popen([*run, "serve", "-c", config, "--listen", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
import urllib.request
for _ in range(600):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
        break
    except OSError:
        try:
            server.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        sys.exit("the peer ended")
print(vkey, f"http://127.0.0.1:{port}", flush=True)
sys.stdin.read()
server.terminate()
server.wait(30)
"""


@unittest.skipUnless(PEER, HOW)
class PeerWitnesses(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    @contextlib.contextmanager
    def peer(self, program: str, *arguments: str) -> Iterator[WitnessClient]:
        process = subprocess.Popen(
            [PEER, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            key, url = process.stdout.readline().split()
            yield WitnessClient(url, parse_verifier_key(key, (COSIGNATURE,)), timeout_s=30)
        finally:
            process.stdin.close()
            if program is WITNESS_LOG:
                process.kill()
            process.wait(60)
            process.stdout.close()

    def test_aics_witness(self) -> None:
        with self.peer(AICS_WITNESS, self.folder, LOG.name, str(verifier_key(LOG))) as client:
            self._goes_through(client)
            seen = client.seen(LOG.name)
            assert seen is not None
            self.assertEqual(parse_checkpoint(seen.text).size, 11)

    def test_witness_log(self) -> None:
        with self.peer(WITNESS_LOG, LOG.name, str(verifier_key(LOG))) as client:
            self._goes_through(client)

    def test_a_gate_has_others_as_its_witnesses(self) -> None:
        """Effects, receipts, and what the peer remembers after the journal has lost its last records."""
        journal, copy = Path(self.folder) / "journal.db", Path(self.folder) / "copy"
        keys = Keys.in_directory(Path(self.folder) / "keys", "shop.example")
        arguments = (keys.logs[0].name, str(verifier_key(keys.logs[0])))
        for program in (WITNESS_LOG, AICS_WITNESS):
            first = (self.folder,) if program is AICS_WITNESS else ()
            with self.peer(program, *first, *arguments) as client:
                policy = parse_policy(f"{keys.policy()}witness peer {client.key} {client.url}\nquorum peer\n")
                for number in range(3):
                    gate = Gate(journal, signing=Path(self.folder) / "keys", witnesses=policy, witness="before")
                    effect = gate.effect("shop.refund", key=lambda case: case)(lambda case: f"re_{case}")
                    outcome = effect(str(number))
                    self.assertEqual(str(outcome), "COMMITTED", outcome.message)
                    self.assertEqual(gate.records.flush(), {})
                    report = verify(gate.receipt(outcome.effect_id), policy)
                    self.assertEqual((report.word, report.exit_code), (Word.WITNESSED, 0), str(report))
                    gate.close()
                    if number == 1:
                        shutil.copyfile(journal, copy)
                journal.unlink()
                shutil.move(copy, journal)
                gate = Gate(journal, signing=Path(self.folder) / "keys", witnesses=policy)
                effect = gate.effect("shop.refund", key=lambda case: case)(lambda case: f"re_{case}")
                with self.assertRaisesRegex(RecordsMissing, "has seen 12 records .* holds 8"):
                    effect("new")
                gate.close()
                for leftover in Path(self.folder).glob("journal.db*"):
                    if leftover.is_file():
                        leftover.unlink()

    def _goes_through(self, client: WitnessClient) -> None:
        log, fork = Log(), Log("x")
        for size, last in ((3, 0), (3, 3), (8, 3), (11, 2)):
            note = log.note(size)
            signed = note.with_signatures(client.cosign(note, log.prove, last))
            self.assertIsNotNone(cosigned_at(signed, client.key))
        with self.assertRaises(WitnessAhead) as ahead:
            client.cosign(log.note(6), log.prove, 6)
        self.assertEqual(ahead.exception.seen, 11)
        for size in (11, 13):
            with self.assertRaises(WitnessDisagrees):
                client.cosign(fork.note(size), fork.prove, 11)
        stranger = KeySigner(LOG.name, b"s" * 32)
        with self.assertRaises(WitnessRefused) as refused:
            client.cosign(sign_checkpoint(Checkpoint(LOG.name, 13, log.roots[13]), stranger), log.prove, 11)
        self.assertEqual(refused.exception.status, 403)
        unknown = KeySigner("log.example/unknown", b"s" * 32)
        with self.assertRaises(WitnessRefused) as refused:
            client.cosign(sign_checkpoint(Checkpoint(unknown.name, 13, log.roots[13]), unknown), log.prove, 0)
        self.assertEqual(refused.exception.status, 404)


OTHERS_VERIFIER = """
import json, sys
from aics_tlog import note as n, checkpoint as c, tree as t
given = json.load(sys.stdin)
found = {}
parsed = n.parse_note(given["note"])
result = c.verify_checkpoint(parsed, n.parse_vkey(given["log"]), [n.parse_vkey(given["witness"])], 1)
found["checkpoint"] = [result.ok, result.size, result.witnesses, result.timestamps]
h = bytes.fromhex
found["inclusion"] = [
    t.verify_inclusion(h(leaf), index, size, [h(x) for x in proof], h(root))
    for leaf, index, size, proof, root in given["inclusion"]
]
found["consistency"] = [
    t.verify_consistency(old, new, h(a), h(b), [h(x) for x in proof]) for old, new, a, b, proof in given["consistency"]
]
json.dump(found, sys.stdout)
"""

OTHERS_REQUESTS = """
import base64, json, sys
from aics_witness.protocol import format_add_checkpoint_request, parse_add_checkpoint_request
given = json.load(sys.stdin)
body = format_add_checkpoint_request(given["old"], [bytes.fromhex(x) for x in given["proof"]], given["note"].encode())
json.dump({"body": base64.b64encode(body).decode()}, sys.stdout)
"""


@unittest.skipUnless(PEER, HOW)
class OthersCode(unittest.TestCase):
    def _run(self, program: str, given: dict[str, Any]) -> dict[str, Any]:
        done = subprocess.run(
            [PEER, "-c", program], input=json.dumps(given), capture_output=True, text=True, timeout=120, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def test_others_verify_our_notes_and_proofs(self) -> None:
        log = Log()
        note = log.note(13)
        note = note.with_signatures([cosign(note.text, WITNESS, 1_700_000_000)])
        inclusion = [
            [
                leaf_hash(log.leaves[i]).hex(),
                i,
                n,
                [x.hex() for x in inclusion_proof(i, n, log.read)],
                log.roots[n].hex(),
            ]
            for n in range(1, 14)
            for i in range(n)
        ]
        consistency = [
            [old, new, log.roots[old].hex(), log.roots[new].hex(), [x.hex() for x in log.prove(old, new)]]
            for new in range(1, 14)
            for old in range(1, new + 1)
        ]
        found = self._run(
            OTHERS_VERIFIER,
            {
                "note": str(note),
                "log": str(verifier_key(LOG, NOTE_SIGNATURE)),
                "witness": str(verifier_key(WITNESS, COSIGNATURE)),
                "inclusion": inclusion,
                "consistency": consistency,
            },
        )
        self.assertEqual(found["checkpoint"], [True, 13, [WITNESS.name], {WITNESS.name: 1_700_000_000}])
        self.assertTrue(all(found["inclusion"]) and all(found["consistency"]))

    def test_our_witness_reads_others_requests(self) -> None:
        log = Log()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "w.db"
            WitnessBook.create(path, WITNESS)
            book = WitnessBook(path, WITNESS, lambda: 5)
            book.add_log(str(verifier_key(LOG)))
            for old, new in ((0, 3), (3, 11)):
                proof = [item.hex() for item in log.prove(old, new)]
                found = self._run(OTHERS_REQUESTS, {"old": old, "proof": proof, "note": str(log.note(new))})
                body = base64.b64decode(found["body"])
                self.assertEqual(parse_submission(body).old, old)
                self.assertEqual(book.add_checkpoint(body).status, 200)
            book.close()


if __name__ == "__main__":
    unittest.main()
