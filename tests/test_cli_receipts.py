"""``interlock receipt``, ``verify``, ``keys``, ``witness`` and ``reconcile``: what they print and how they exit."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sealing_support import LossCase, SealingCase

try:
    import rich
    import typer
except ImportError:
    raise unittest.SkipTest("the command line's packages (typer, rich) are not installed") from None

from interlock_tools import Gate
from interlock_tools.cli.main import main
from interlock_tools.receipts.keys import verifier_key
from interlock_tools.sealing import Keys

assert rich and typer
ROOT = Path(__file__).resolve().parent.parent
RUN = "import sys; from interlock_tools.cli.main import main; sys.argv[0] = 'interlock'; main()"


def run_cli(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    argv = mock.patch.object(sys, "argv", ["interlock", *arguments])
    with argv, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return code, out.getvalue(), err.getvalue()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'integrations'}"}


class CliCase(SealingCase):
    def setUp(self) -> None:
        super().setUp()
        self.keys_there()
        self.sign(signing=self.keys)
        self.outcome = self.refund()("4471")
        self.file = self.folder / "one.receipt.json"
        self.policy_file = self.folder / "trusted.policy"
        self.policy_file.write_text(self.gate.records.policy() + "quorum none\n")

    def issue(self) -> None:
        arguments = ["--journal", str(self.path), "--signing", str(self.keys), "--out", str(self.file)]
        code, out, err = run_cli("receipt", self.outcome.effect_id, *arguments)
        self.assertEqual((code, err), (0, ""))
        self.assertIn(self.outcome.effect_id, out)

    def verify(self, *more: str) -> tuple[int, str, str]:
        return run_cli("verify", str(self.file), "--policy", str(self.policy_file), *more)


class Prune(CliCase):
    def prune(self, *more: str) -> tuple[int, str, str]:
        places = ["--archive", str(self.folder / "archive"), "--journal", str(self.path), "--signing", str(self.keys)]
        return run_cli("prune", *places, *more)

    def test_from_the_journal_to_a_verified_receipt_out_of_the_archive(self) -> None:
        effect_id = self.outcome.effect_id
        code, out, err = self.prune("--before", "0h", "--dry-run")
        self.assertEqual((code, out, err), (0, "1 effects would be archived: 1 test.refund\n", ""))
        code, out, _ = self.prune("--before", "2020-01-31")
        self.assertEqual((code, out), (0, "Nothing to archive.\n"))
        code, out, _ = self.prune("--before", "0h", "--keep-keys", "365d", "--json")
        report = json.loads(out)
        self.assertEqual((code, report["archived"], report["forgotten"]), (0, {"test.refund": 1}, 0))
        self.assertTrue(Path(report["file"]).is_file())
        self.gate.close()
        self.path.unlink()
        code, out, err = run_cli(
            "receipt", effect_id, "--archive", str(self.folder / "archive"), "--out", str(self.file)
        )
        self.assertEqual((code, err), (0, ""))
        code, out, _ = self.verify()
        self.assertEqual((code, out.startswith("LOGGED: ")), (0, True), out)
        code, _, err = run_cli("receipt", "f" * 32, "--archive", str(self.folder / "archive"))
        self.assertEqual((code, "in no archive file" in err), (4, True), err)

    def test_what_the_journal_says_of_an_archived_effect(self) -> None:
        self.prune("--before", "0h")
        for command in ("show", "receipt"):
            code, _, err = run_cli(command, self.outcome.effect_id, "--journal", str(self.path))
            self.assertNotEqual(code, 0)
            if command == "show":
                self.assertIn(f"interlock receipt {self.outcome.effect_id} --archive DIRECTORY", err)

    def test_an_age_that_is_none(self) -> None:
        for arguments in (("--before", "soon"), ("--before", "9d", "--keep-keys", "2020-01-31")):
            code, out, err = self.prune(*arguments)
            self.assertEqual((code, out), (2, ""), err)


class Verify(CliCase):
    def test_a_good_one(self) -> None:
        self.issue()
        code, out, err = self.verify()
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("LOGGED: "), out)
        self.assertIn("happened: yes", out)
        code, out, _ = self.verify("--json")
        self.assertEqual((code, json.loads(out)["word"]), (0, "LOGGED"))

    def test_exit_codes(self) -> None:
        self.issue()
        document = json.loads(self.file.read_text())
        witnessed = self.policy_file.read_text().replace("quorum none\n", "")
        cases: list[tuple[int, str, str]] = [
            (1, json.dumps({**document, "records": document["records"][:-1]}), self.policy_file.read_text()),
            (1, "no receipt at all", self.policy_file.read_text()),
            (4, json.dumps(document), "nobody\n"),
        ]
        witness = self.witness()
        cases.append((2, json.dumps(document), f"{witnessed}{witness.line}quorum a\n"))
        for code, receipt, policy in cases:
            with self.subTest(code):
                self.file.write_text(receipt)
                self.policy_file.write_text(policy)
                found, out, err = self.verify()
                self.assertEqual(found, code, out + err)
                found, out, err = self.verify("--json")
                self.assertEqual((found, json.loads(out)["exit_code"], err), (code, code, ""))
        self.assertEqual(run_cli("verify", str(self.file))[0], 4)
        self.assertEqual(run_cli("verify", "missing.json", "--policy", str(self.policy_file))[0], 4)

    def test_an_unsigned_one_is_consistent(self) -> None:
        self.gate.close()
        for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        self.gate = self.open()
        self.outcome = self.refund()("4471")
        code, out, _ = run_cli("receipt", self.outcome.effect_id, "--journal", str(self.path))
        self.assertEqual(code, 0)
        self.file.write_text(out)
        code, out, _ = self.verify()
        self.assertEqual(code, 2)
        self.assertTrue(out.startswith("CONSISTENT: "), out)
        self.assertNotIn("tamper-evident", out)

    def test_the_command_line_never_begins_to_sign(self) -> None:
        """What looks at a journal must not stop the application that writes it without keys."""
        plain = self.folder / "plain.db"
        gate = Gate(plain)
        self.addCleanup(gate.close)
        where = ["--journal", str(plain), "--signing", str(self.keys)]
        for arguments in (["receipt", "0" * 32], ["keys", "rotate"], ["prune", "--before", "1d", "--archive", "x"]):
            code, out, err = run_cli(*arguments, *where)
            self.assertEqual((code, out), (3, ""))
            self.assertIn("is not signed; leave out --signing", err)
        self.assertIsNone(gate.journal.records.fact("origin"))

    def test_where_a_receipt_cannot_be_written(self) -> None:
        places = ["--journal", str(self.path), "--signing", str(self.keys), "--out"]
        for out in ("/dev/full", str(self.folder / "none" / "x"), str(self.folder)):
            code, _, err = run_cli("receipt", self.outcome.effect_id, *places, out)
            self.assertEqual((code, err.count("\n"), err.startswith("interlock: ")), (3, 1, True), err)
        code, _, err = run_cli("receipt", self.outcome.effect_id, "--archive", str(self.folder / "none"))
        self.assertEqual((code, "No such file" in err), (3, True), err)

    def test_a_signed_journal_asks_for_its_keys(self) -> None:
        code, _, err = run_cli("receipt", self.outcome.effect_id, "--journal", str(self.path))
        self.assertEqual(code, 3)
        self.assertIn("--signing", err)

    def test_it_needs_this_package_alone(self) -> None:
        """On a machine that has none of the extras, and without a word to anybody else's code."""
        self.issue()
        absent = ("typer", "rich", "psycopg", "starlette", "uvicorn", "stripe", "github", "googleapiclient", "resend")
        code = f"import sys; [sys.modules.__setitem__(name, None) for name in {absent!r}]; {RUN}"
        command = [sys.executable, "-c", code, "verify", str(self.file), "--policy", str(self.policy_file)]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertTrue(done.stdout.startswith("LOGGED: "))

    def test_it_works_in_an_empty_network_namespace(self) -> None:
        self.issue()
        unshare = ["unshare", "--user", "--map-root-user", "--net"] if os.getuid() else ["unshare", "--net"]
        tried = None
        if shutil.which("unshare") is not None:
            tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, timeout=20, check=False)
        if tried is None or tried.returncode:
            why = "unshare is not installed" if tried is None else tried.stderr.strip()
            self.skipTest(f"an empty network namespace cannot be made here: {why}")
        look = "import socket; print(len(socket.if_nameindex()))"
        seen = subprocess.run([*unshare, sys.executable, "-c", look], capture_output=True, text=True, check=True)
        self.assertLessEqual(int(seen.stdout), 1, "loopback at most")
        command = [*unshare, sys.executable, "-c", RUN, "verify", str(self.file), "--policy", str(self.policy_file)]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_service_is_asked_only_on_demand_and_cannot_tell_without_access(self) -> None:
        self.issue()
        code, out, _ = self.verify("--check-service")
        self.assertEqual(code, 4)
        self.assertIn("could not be asked", out)


class Writing(CliCase):
    def test_what_is_signed_is_resolved_with_its_keys(self) -> None:
        outcome = self.refund("unsure", lookup=None)
        self.service.script = [TimeoutError()]
        unsure = outcome("1")
        self.assertOutcome(unsure, "AMBIGUOUS:no_evidence")
        said = ["--landed", "--by", "dana", "--why", "seen", "--journal", str(self.path)]
        code, _, err = run_cli("resolve", unsure.effect_id, *said)
        self.assertEqual(code, 3)
        self.assertIn("without its keys", err)
        code, out, err = run_cli("resolve", unsure.effect_id, *said, "--signing", str(self.keys))
        self.assertEqual((code, err), (0, ""), out)

    def test_keys_are_shown_changed_and_retired(self) -> None:
        code, out, _ = run_cli("keys", "show", "--signing", str(self.keys))
        self.assertEqual((code, out), (0, self.gate.records.policy()))
        self.gate.close()
        where = ["--journal", str(self.path), "--signing", str(self.keys)]
        old = str(verifier_key(Keys.in_directory(self.keys).writer))
        for arguments in (["rotate"], ["rotate", "--log"], ["retire", old]):
            code, out, err = run_cli("keys", *arguments, *where)
            self.assertEqual((code, err), (0, ""), out)
        self.issue()
        self.assertEqual(self.verify()[0], 0, "under the policy from before")
        self.assertEqual(run_cli("keys", "show")[0], 3)


class Witness(CliCase):
    def test_a_witness_is_made_and_served(self) -> None:
        database, key = str(self.folder / "w.db"), str(self.folder / "w.key")
        code, out, _ = run_cli("witness", "init", "--database", database, "--key", key, "--name", "w.example/a")
        self.assertEqual(code, 0)
        verifier = re.findall(r"w\.example/a\+\S+", out)[0]
        code, _, err = run_cli("witness", "init", "--database", database, "--key", key, "--name", "w.example/a")
        self.assertEqual(code, 3)
        self.assertIn("belong together", err)
        log = str(verifier_key(Keys.in_directory(self.keys).logs[0]))
        command = [sys.executable, "-c", RUN, "witness", "serve", "--database", database, "--key", key, "--log", log]
        with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as serving:
            try:
                assert serving.stdout is not None
                url = serving.stdout.readline().strip()
                self.gate.close()
                text = self.policy_file.read_text().replace("quorum none", f"witness a {verifier} {url}\nquorum a")
                self.policy_file.write_text(text)
                self.sign(signing=self.keys, witnesses=self.policy_file)
                self.assertEqual(self.gate.records.flush(), {})
                self.file.write_bytes(self.gate.records.receipt(self.outcome.effect_id))
                code, out, _ = self.verify()
                self.assertEqual(code, 0, out)
                self.assertTrue(out.startswith("WITNESSED: "))
            finally:
                serving.send_signal(signal.SIGTERM)
                serving.wait(20)


APPLICATION = """
from pathlib import Path
from datetime import timedelta
from interlock_tools import Gate
gate = Gate({journal!r}, signing={keys!r}, witnesses={policy!r})

def find(case, idempotency_key):
    found = Path({there!r}) / idempotency_key
    return {{"id": "re_lost"}} if found.exists() else None

@gate.effect("test.refund", key=lambda case: case, lookup=find, send_timeout=timedelta(milliseconds=1))
def refund(case: str, amount: int = 2000, *, idempotency_key: str, on_send) -> str:
    raise AssertionError("nothing is sent here")
"""


class Reconcile(LossCase):
    def test_from_the_command_line(self) -> None:
        self.keys_there()
        witness = self.begin(signing=self.keys)
        self.looked_up()
        self.gate.close()
        copy = self.folder / "backup"
        shutil.copyfile(self.path, copy)
        self.open_witnessed(witness, signing=self.keys)
        lost = self.looked_up()("lost")
        self.gate.close()
        self.restore(copy)
        self.open_witnessed(witness, signing=self.keys)
        self.gate.close()
        policy = self.folder / "p.policy"
        policy.write_text(str(self.policy(witness)))
        there = self.folder / "there"
        there.mkdir()
        (there / lost.effect_id).touch()
        values: dict[str, Any] = {"journal": self.path, "keys": self.keys, "policy": policy, "there": there}
        text = APPLICATION.format(**{name: str(value) for name, value in values.items()})
        (self.folder / "lost_application.py").write_text(text)
        requests = self.folder / "requests.jsonl"
        requests.write_text('["test.refund", {"case": "lost"}]\n["test.refund", {"case": "never"}]\n')
        command = [sys.executable, "-c", RUN, "reconcile", "--import", "lost_application", "--by", "dana", "--json"]
        for arguments, code in (([], 0), ([], 2)):
            done = subprocess.run(
                [*command, "--requests", str(requests), *arguments],
                cwd=self.folder,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            if code == 0:
                report = json.loads(done.stdout)
                self.assertEqual((report["done"], report["found"]), (True, [lost.effect_id]))
        self.sign(signing=self.keys)
        self.assertOutcome(self.gate.outcome(lost.effect_id), "COMMITTED")


if __name__ == "__main__":
    unittest.main()
