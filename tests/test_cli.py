"""The ``interlock`` command: what it prints (golden files), how it exits, and that it makes and changes nothing else.

UPDATE_GOLDEN=1 writes the golden files anew.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import MEMORY, Lands, Service

from interlock_tools import Budget, DefiniteNo, Gate, Grant, RateLimited
from interlock_tools.core.entries import Instant
from interlock_tools.journal.sqlite import SqliteJournal

try:
    import rich
    import typer
except ImportError:
    raise unittest.SkipTest("the command line's packages (typer, rich) are not installed") from None

from interlock_tools.cli.main import main

assert rich and typer
ROOT = Path(__file__).resolve().parent.parent
GOLDEN = Path(__file__).resolve().parent / "golden"

APPLICATION = """
import os
from datetime import timedelta
from interlock_tools import Gate
gate = Gate(os.environ.get("INTERLOCK_JOURNAL", {path!r}))

@gate.effect("stripe.refund", key=lambda case: case, dedupes=True)
def refund(case: str, amount: int = 2000, *, idempotency_key: str, on_send) -> str:
    on_send()
    return "re_recovered"
"""


class StillClock:
    """Clocks that stand still until the test moves them, so that what is printed is always the same."""

    def __init__(self) -> None:
        self.at_ms = 1_790_000_000_000

    def now(self) -> Instant:
        return Instant("boot-1", self.at_ms, self.at_ms)


class CliCase(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="cli-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "refunds.db"
        self.clock = StillClock()
        self.service = Service()
        self.gate = Gate(SqliteJournal(self.path, self.clock), retry=0)
        self.addCleanup(self.gate.close)
        environment = {name: text for name, text in os.environ.items() if name != "INTERLOCK_JOURNAL"}
        patch = mock.patch.dict(os.environ, {**environment, "COLUMNS": "200", "NO_COLOR": "1"}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def refund(self, name: str = "stripe.refund", **options: Any) -> Any:
        service = self.service

        def send(case: str, amount: int = 2000, *, idempotency_key: str, on_send: Any) -> Any:
            on_send()
            return service.create(idempotency_key, case=case, amount=amount)

        return self.gate.effect(name, key=lambda case: case, **options)(send)

    def ambiguous(self, case: str = "1") -> Any:
        self.service.script = [TimeoutError("read timed out")]
        outcome = self.refund()(case)
        self.assertEqual(str(outcome), "AMBIGUOUS:no_evidence")
        return outcome

    def run_cli(self, *arguments: str, journal: bool = True) -> tuple[int, str, str]:
        """Run the command in this process; return its exit code and what it printed."""
        out, err = io.StringIO(), io.StringIO()
        argv = ["interlock", *arguments, *(["--journal", str(self.path)] if journal else [])]
        with (
            mock.patch.object(sys, "argv", argv),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            self.assertRaises(SystemExit) as ended,
        ):
            main()
        return int(ended.exception.code or 0), out.getvalue(), err.getvalue()

    def assertGolden(self, name: str, text: str) -> None:
        text = re.sub(r"process \d+ on \S+?(?=[,\s]|$)", "process PID on HOST", text)
        text = text.replace(str(self.folder), "FOLDER")
        text = "\n".join(re.sub(r"(?<=\S) {2,}", "  ", line).rstrip() for line in text.splitlines()) + "\n"
        path = GOLDEN / name
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        self.assertEqual(text, path.read_text(encoding="utf-8"), "UPDATE_GOLDEN=1 accepts the new output")


class Watch(CliCase):
    APP = """
import os
from interlock_tools import Gate, Settlement
gate = Gate(os.environ.get("INTERLOCK_JOURNAL", {path!r}))

@gate.effect("shop.refund", key=lambda case: case, watch=lambda evidence: Settlement(*evidence["becomes"]))
def refund(case: str, becomes: list, *, idempotency_key: str):
    return {{"id": "re_1", "becomes": becomes}}
"""

    def application(self, becomes: list[str]) -> None:
        path = str(self.folder / "watched.db")
        (self.folder / "watched_app.py").write_text(self.APP.format(path=path), encoding="utf-8")
        code = f"import watched_app; watched_app.refund('1', {becomes!r}); watched_app.gate.close()"
        subprocess.run([sys.executable, "-c", code], cwd=self.folder, check=True, timeout=60)

    def command(self, *arguments: str) -> list[str]:
        program = "import sys; sys.argv[0] = 'interlock'; from interlock_tools.cli.main import main; main()"
        return [sys.executable, "-c", program, "watch", "--import", "watched_app", *arguments]

    def test_one_pass_says_what_failed_and_tells_a_command(self) -> None:
        self.application(["failed", "declined"])
        told = self.folder / "told"
        hook = f"{sys.executable} -c \"import sys; open({str(told)!r}, 'a').write(sys.stdin.read())\""
        done = subprocess.run(
            self.command("--once", "--json", "--hook-command", hook),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        (changed,) = json.loads(done.stdout)["changed"]
        self.assertEqual(changed["settlement"]["state"], "failed")
        self.assertEqual(json.loads(told.read_text())["event"], "failed")
        again = subprocess.run(self.command("--once"), cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual((again.returncode, "looked at 0" in again.stdout), (0, True), again.stdout + again.stderr)

    def test_it_keeps_watching_until_it_is_told_to_stop(self) -> None:
        self.application(["settled", "succeeded"])
        process = subprocess.Popen(self.command(), cwd=self.folder, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            self.assertIn("looked at 1", process.stdout.readline())
            process.terminate()
            self.assertEqual(process.wait(30), 0)
        finally:
            process.kill()
            process.communicate()


class Help(CliCase):
    def test_help_of_every_command(self) -> None:
        texts = []
        commands = (
            "show",
            "pending",
            "approve",
            "reject",
            "resolve",
            "redecide",
            "recover",
            "watch",
            "prune",
            "mcp-proxy",
        )
        for arguments in ((), *((command,) for command in commands)):
            code, out, _ = self.run_cli(*arguments, "--help", journal=False)
            self.assertEqual(code, 0)
            texts.append(f"$ interlock {' '.join((*arguments, '--help'))}\n{out}")
        self.assertGolden("cli_help.txt", "\n".join(texts))

    def test_the_exit_codes_in_the_help_are_those_of_the_code(self) -> None:
        from interlock_tools.cli import exits

        codes = sorted(value for value in vars(exits).values() if isinstance(value, int))
        self.assertEqual(codes, [int(code) for code in re.findall(r"(\d) ", exits.TABLE)])


class Show(CliCase):
    def test_an_effect_with_everything(self) -> None:
        self.service.script = [Lands(TimeoutError("read timed out"))]
        refund = self.refund(
            premises=lambda: {"refunded_by_others": 0, "chargebacks": []},
            allowed=lambda: Grant("approval-7", by="kim"),
            budget=lambda case, amount: Budget(f"case:{case}", amount, 3000),
            dedupes=True,
        )
        outcome = refund("4471")
        self.assertEqual(str(outcome), "IN_FLIGHT:waiting")
        self.clock.at_ms += 61_000
        self.assertEqual(str(refund("4471")), "COMMITTED")
        code, out, _ = self.run_cli("show", outcome.effect_id)
        self.assertEqual(code, 0)
        self.assertGolden("cli_show_resent.txt", out)

    def test_a_refusal_with_what_changed(self) -> None:
        facts: dict[str, Any] = {"balance": 10, "open": True}
        refund = self.refund(premises=lambda: facts, expect={"open": True})
        refund.propose("4471", by="kim")
        facts.update(balance=3, open=False)
        refused = refund("4471")
        _, out, _ = self.run_cli("show", refused.effect_id)
        self.assertGolden("cli_show_refused.txt", out)

    def test_every_decision_of_a_request(self) -> None:
        self.service.script = [DefiniteNo("Your card was declined.", code="card_declined")]
        refund = self.refund()
        refund.redecide(refund("4471").effect_id, by="kim")
        refund("4471")
        refund("other")
        _, out, _ = self.run_cli("show", "--request", "4471")
        self.assertGolden("cli_show_request.txt", out)
        code, out, _ = self.run_cli("show", "--request", "4471", "--json")
        effects = json.loads(out)["effects"]
        self.assertEqual(
            (code, [found["outcome"]["outcome"] for found in effects]), (0, ["REFUSED:replaced", "COMMITTED"])
        )

    def test_json_is_the_whole_record(self) -> None:
        outcome = self.refund()("4471")
        code, out, err = self.run_cli("show", outcome.effect_id, "--json")
        self.assertEqual((code, err), (0, ""))
        (effect,) = json.loads(out)["effects"]
        self.assertEqual(effect["outcome"], outcome.to_json())
        self.assertEqual([entry["kind"] for entry in effect["entries"]][-1], "committed")
        self.assertEqual(
            [entry["body"] for entry in effect["entries"]], [e.body for e in self.gate.history(outcome.effect_id)]
        )

    def test_odd_characters_and_secrets_break_no_line(self) -> None:
        @self.gate.effect("odd", key=lambda case, **_: case)
        def act(case: str, text: str) -> Any:
            return {"id": "x", "client_secret": "hush-hush"}

        outcome = act("a\x00b\n[bold]c", "\x1b[31mred\x1b[0m \u202e [link=x]y[/link]\n" + "long " * 100)
        _, out, _ = self.run_cli("show", outcome.effect_id)
        self.assertTrue(all(line.isprintable() for line in out.split("\n")), out)
        self.assertIn("[bold]c", out)
        self.assertIn("[link=x]y[/link]", out)
        self.assertNotIn("hush-hush", out)
        self.assertEqual(self.run_cli("show", "--request", "a\x00b\n[bold]c")[0], 0)

    def test_what_cannot_be_printed_is_no_answer(self) -> None:
        """Neither 0 nor 1, which say that it was done."""
        effect_id = self.refund()("1").effect_id
        for arguments in (["pending"], ["show", effect_id, "--json"], ["receipt", effect_id]):
            with Path("/dev/full").open("w") as full, mock.patch.object(sys, "argv", ["interlock", *arguments]):
                error = io.StringIO()
                full_out = contextlib.redirect_stdout(full)
                journal = mock.patch.dict(os.environ, {"INTERLOCK_JOURNAL": str(self.path)})
                with journal, full_out, contextlib.redirect_stderr(error), self.assertRaises(SystemExit) as ended:
                    main()
                self.assertEqual((ended.exception.code, error.getvalue().count("\n")), (3, 1), error.getvalue())
                with contextlib.suppress(OSError):
                    full.close()

    def test_in_colour_on_a_terminal_only(self) -> None:
        outcome = self.refund()("4471")
        os.environ.pop("NO_COLOR")
        self.assertNotIn("\x1b", self.run_cli("show", outcome.effect_id)[1])
        os.environ["FORCE_COLOR"] = "1"
        self.assertIn("\x1b", self.run_cli("show", outcome.effect_id)[1])

    def test_what_is_not_there(self) -> None:
        for arguments, code in (
            (("show", "0" * 32), 4),
            (("show", "--request", "nobody"), 4),
            (("show",), 2),
            (("show", "x", "--request", "y"), 2),
            (("show", "\udcff"), 4),
            (("receipt", "\udcff"), 4),
            (("watch", "--import", "json", "--hook-url", "nowhere"), 2),
            (("watch", "--import", "json", "--hook-command", "'"), 2),
        ):
            with self.subTest(arguments):
                got, out, err = self.run_cli(*arguments)
                self.assertEqual((got, out), (code, ""))
                self.assertRegex(err, r"\Ainterlock: [^\n]+\n\Z")


class Pending(CliCase):
    def test_nothing(self) -> None:
        self.refund()("1")
        self.assertEqual(self.run_cli("pending"), (0, "Nothing waits for a person.\n", ""))
        self.assertEqual(json.loads(self.run_cli("pending", "--json")[1]), {"pending": []})

    def test_something_exits_with_one(self) -> None:
        outcome = self.ambiguous("4471")
        code, out, _ = self.run_cli("pending")
        self.assertEqual(code, 1)
        self.assertGolden("cli_pending.txt", out)
        code, out, _ = self.run_cli("pending", "--json")
        self.assertEqual((code, json.loads(out)["pending"][0]["effect_id"]), (1, outcome.effect_id))


class Approve(CliCase):
    APP = """
import os
from interlock_tools import Gate
gate = Gate(os.environ.get("INTERLOCK_JOURNAL", {path!r}))

@gate.effect("stripe.refund", key=lambda case: case, requires_approval=True)
def refund(case: str, amount: int = 2000, *, idempotency_key: str) -> str:
    return "re_1"
"""

    def asked(self, case: str = "4471") -> Any:
        facts = {"refunded_by_others": 0}
        expires = timedelta(days=3650)  # the clock of the command is not the one that stands still
        refund = self.refund(premises=lambda: facts, requires_approval=True, approval_expires=expires)
        return refund, refund(case)

    def test_what_waits_is_told_and_approved(self) -> None:
        refund, outcome = self.asked()
        code, out, _ = self.run_cli("pending")
        self.assertEqual(code, 1)
        self.assertGolden("cli_pending_approval.txt", out)
        _, out, _ = self.run_cli("pending", "--json")
        asked = json.loads(out)["pending"][0]["approval"]
        self.assertEqual(asked["arguments"], {"amount": 2000, "case": "4471"})
        answer = ("approve", outcome.effect_id, "--by", "kim", "--why", "customer is right")
        code, _, err = self.run_cli(*answer, "--digest", "0" * 12)
        self.assertEqual(code, 4)
        self.assertIn("not what was seen", err)
        code, out, _ = self.run_cli(*answer, "--digest", asked["digest"][:12])
        self.assertEqual(code, 0)
        self.assertEqual(str(refund("4471")), "COMMITTED")
        _, out, _ = self.run_cli("show", outcome.effect_id)
        self.assertGolden("cli_show_approved.txt", re.sub(r"(?m)^3( +)\S+ \S+", r"3\1NOW", out))
        code, _, err = self.run_cli(*answer)
        self.assertEqual(code, 4)
        self.assertRegex(err, r"\Ainterlock: effect \w+ cannot be approved: it is committed already\n\Z")

    def test_rejected_and_decided_again(self) -> None:
        refund, outcome = self.asked()
        code, out, _ = self.run_cli("reject", outcome.effect_id, "--by", "kim", "--why", "ask the bank first")
        self.assertEqual(code, 0)
        self.assertIn("REFUSED:rejected", out)
        _, out, _ = self.run_cli("show", outcome.effect_id)
        self.assertIn(f"interlock redecide {outcome.effect_id} --by WHO", out)
        code, _, _ = self.run_cli("redecide", outcome.effect_id, "--by", "kim", "--facts", "[]")
        self.assertEqual(code, 2)
        code, out, _ = self.run_cli("redecide", outcome.effect_id, "--by", "kim")
        self.assertEqual(code, 0, out)
        self.assertIn('Decided again on {"refunded_by_others":0}', out)
        again = refund("4471")
        self.assertEqual(str(again), "IN_FLIGHT:awaiting_approval")
        self.assertEqual(self.run_cli("approve", again.effect_id, "--by", "kim", "--json")[0], 0)
        self.assertEqual(str(refund("4471")), "COMMITTED")

    def test_another_amount(self) -> None:
        path = self.folder / "asking.db"
        (self.folder / "asking_app.py").write_text(self.APP.format(path=str(path)), encoding="utf-8")
        program = "import sys; sys.argv[0] = 'interlock'; from interlock_tools.cli.main import main; main()"

        def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-c", code, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60
            )

        asked = run("import asking_app; print(asking_app.refund('1', 5000).effect_id)").stdout.strip()
        change = ("approve", asked, "--by", "kim", "--set", "amount=2500")
        self.assertEqual(run(program, *change).returncode, 2)
        done = run(program, *change, "--import", "asking_app", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(json.loads(done.stdout)["effect_id"], asked)
        again = run("import asking_app; print(asking_app.refund('1', 5000), asking_app.refund('1', 2500))")
        self.assertEqual(again.stdout.split(), ["REFUSED:conflicting_payload", "COMMITTED"], again.stderr)


class Resolve(CliCase):
    def test_it_did_not_land(self) -> None:
        outcome = self.ambiguous("4471")
        code, out, _ = self.run_cli(
            "resolve", outcome.effect_id, "--not-landed", "--by", "kim", "--why", "not in the dashboard"
        )
        self.assertEqual(code, 0)
        self.assertGolden("cli_resolve.txt", out)
        self.assertEqual(self.run_cli("pending")[0], 0)
        self.assertEqual(str(self.gate.outcome(outcome.effect_id)), "REFUSED:rejected")

    def test_it_landed_as_json(self) -> None:
        outcome = self.ambiguous()
        code, out, _ = self.run_cli("resolve", outcome.effect_id, "--landed", "--by", "kim", "--why", "seen", "--json")
        self.assertEqual((code, json.loads(out)["outcome"]), (0, "COMMITTED"))

    def test_what_cannot_be_resolved(self) -> None:
        done = self.refund()("1")
        for effect_id in (done.effect_id, "0" * 32):
            code, out, err = self.run_cli("resolve", effect_id, "--landed", "--by", "kim", "--why", "seen")
            self.assertEqual((code, out), (4, ""))
            self.assertRegex(err, r"\Ainterlock: [^\n]+\n\Z")
            code, out, err = self.run_cli("resolve", effect_id, "--landed", "--by", "kim", "--why", "seen", "--json")
            self.assertEqual((code, err, json.loads(out)["exit_code"]), (4, "", 4))

    def test_who_and_why_must_be_said(self) -> None:
        outcome = self.ambiguous()
        for arguments in (
            ("--by", "kim", "--why", "seen"),
            ("--landed", "--why", "seen"),
            ("--landed", "--by", "kim"),
            ("--landed", "--by", " ", "--why", "seen"),
        ):
            with self.subTest(arguments):
                code, _, err = self.run_cli("resolve", outcome.effect_id, *arguments)
                self.assertEqual(code, 2)
                self.assertNotIn("Traceback", err)
        self.assertEqual(len(self.gate.pending()), 1)


class Recover(CliCase):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(setattr, sys, "path", list(sys.path))
        self.addCleanup(self.forget)
        self.module = f"application_{self.folder.name.replace('-', '_')}"
        patch = mock.patch.object(Path, "cwd", classmethod(lambda cls: self.folder))
        patch.start()
        self.addCleanup(patch.stop)

    def forget(self) -> None:
        """Close the gates of the applications that were imported, and import them anew the next time."""
        for name in [name for name in sys.modules if name.startswith(self.module)]:
            for value in vars(sys.modules.pop(name)).values():
                if isinstance(value, Gate):
                    value.close()

    def application(self, code: str = APPLICATION) -> str:
        (self.folder / f"{self.module}.py").write_text(textwrap.dedent(code.replace("{path!r}", repr(str(self.path)))))
        return self.module

    def test_with_the_application_s_own_code(self) -> None:
        self.service.script = [Lands(TimeoutError())]
        self.assertEqual(str(self.refund(dedupes=True)("4471")), "IN_FLIGHT:waiting")
        code, out, err = self.run_cli("recover", "--import", self.application(), journal=False)
        self.assertEqual((code, err), (0, ""))
        self.assertGolden("cli_recover.txt", out)
        code, out, _ = self.run_cli("recover", "--import", f"{self.module}:gate", "--json")
        self.assertEqual((code, json.loads(out)), (0, {"outcomes": [], "unregistered": []}))
        self.assertEqual(self.run_cli("recover", "--import", self.module)[1], "Nothing was open.\n")

    def test_what_stays_open_exits_with_one(self) -> None:
        self.service.script = [RateLimited(retry_after=60)]
        self.refund("mail.send")("4471")
        self.refund().propose("4472")
        code, out, _ = self.run_cli("recover", "--import", self.application())
        self.assertEqual(code, 1)
        self.assertGolden("cli_recover_open.txt", out)
        code, out, _ = self.run_cli("recover", "--import", self.module, "--json")
        self.assertEqual((code, json.loads(out)["unregistered"][0]["effect"]), (1, "mail.send"))

    def test_what_cannot_be_imported(self) -> None:
        self.application("import sys\nsys.exit('configure me: sk_test_abc')\n")
        two = "from interlock_tools import Gate\na = Gate({path!r})\nb = Gate({path!r})\n"
        (self.folder / f"{self.module}_two.py").write_text(two.replace("{path!r}", repr(str(self.path))))
        for target in (
            "no_such_module_anywhere",
            self.module,
            f"{self.module}_two",
            f"{self.module}_two:nothing",
            "json",
            "json:dumps",
            "",
            ":gate",
        ):
            with self.subTest(target):
                code, out, err = self.run_cli("recover", "--import", target)
                self.assertEqual((code, out), (3, ""))
                self.assertRegex(err, r"\Ainterlock: [^\n]+\n\Z")
                self.assertNotIn("sk_test", err)
        self.assertEqual(self.run_cli("recover", "--import", f"{self.module}_two:b")[0], 0)

    def test_the_journal_named_must_be_the_one_used(self) -> None:
        other = self.folder / "other.db"
        Gate(other).close()
        self.application(f"from interlock_tools import Gate\ngate = Gate({str(other)!r})\n")
        code, _, err = self.run_cli("recover", "--import", self.module)
        self.assertEqual(code, 3)
        self.assertIn("other.db", err)
        code, _, err = self.run_cli("recover", "--import", self.module, "--journal", f"sqlite://{other}", journal=False)
        self.assertEqual((code, err), (0, ""))

    def test_a_journal_that_is_not_there_is_not_made(self) -> None:
        missing = self.folder / "missing.db"
        code, _, err = self.run_cli("recover", "--import", self.application(), "--journal", str(missing), journal=False)
        self.assertEqual(code, 3)
        self.assertIn("there is no journal", err)
        self.assertFalse(missing.exists())


class Journals(CliCase):
    def test_none_named_missing_or_unusable(self) -> None:
        broken = self.folder / "broken.db"
        broken.write_bytes(b"not a database, not at all" * 50)
        for arguments in (
            (),
            ("--journal", ""),
            ("--journal", str(self.folder / "missing.db")),
            ("--journal", f"sqlite://{self.folder}/missing.db"),
            ("--journal", str(broken)),
            ("--journal", str(self.folder)),
            ("--journal", "mysql://root:hunter2@localhost/x"),
        ):
            with self.subTest(arguments):
                code, out, err = self.run_cli("pending", *arguments, journal=False)
                self.assertEqual((code, out), (3, ""))
                self.assertRegex(err, r"\Ainterlock: [^\n]+\n\Z")
                self.assertNotIn("hunter2", err)
        self.assertFalse((self.folder / "missing.db").exists())

    def test_named_by_the_environment(self) -> None:
        os.environ["INTERLOCK_JOURNAL"] = str(self.path)
        self.assertEqual(self.run_cli("pending", journal=False)[0], 0)

    def test_looking_changes_nothing(self) -> None:
        outcome = self.ambiguous()
        before = self.gate.history(outcome.effect_id)
        for arguments in (("show", outcome.effect_id), ("pending",), ("show", "--request", "1", "--json")):
            self.run_cli(*arguments)
        self.assertEqual(self.gate.history(outcome.effect_id), before)
        self.assertEqual(len(self.gate.journal.effects()), 1)


class EntryPoint(CliCase):
    """In processes of their own."""

    def start(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)

    def test_as_a_process(self) -> None:
        self.ambiguous()
        done = self.start("from interlock_tools.cli.main import main; main()", "pending", "--journal", str(self.path))
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("AMBIGUOUS:no_evidence", done.stdout)

    def test_without_its_packages(self) -> None:
        """They are an extra; what is missing is named, with the command that installs it."""
        done = self.start(
            "import sys, importlib.util as util\n"
            "real = util.find_spec\n"
            "util.find_spec = lambda name, *a: None if name in ('typer', 'rich') else real(name, *a)\n"
            "from interlock_tools.cli.main import main; main()"
        )
        self.assertEqual(done.returncode, 3)
        self.assertEqual(
            done.stderr,
            "interlock: the command line needs typer and rich; pip install 'interlock-tools[cli]'\n",
        )


if __name__ == "__main__":
    unittest.main()
