"""The proxy between a real MCP server in a process of its own and the official client; and what no client writes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from interlock_tools import DefinitionError, Gate
from interlock_tools.mcp import wire
from interlock_tools.mcp.config import fill, filled, load
from interlock_tools.mcp.gating import OUTCOME
from interlock_tools.mcp.schemas import schemas_of
from interlock_tools.mcp.server import Server, ServerError, ServerGone
from interlock_tools.testing import CrashPoint

HERE = Path(__file__).resolve().parent
PROXY = [sys.executable, "-c", "from interlock_tools.cli.main import main; main()", "mcp-proxy"]
CONFIG = """
journal = "gate.db"
[request]
env = "SHOP_REQUEST"
meta = "shop.example/request"
[tools.create_refund]
effect = "shop.refund"
key = "{request}:{payment}"
lookup = {tool = "find_refund", arguments = {payment = "{payment}"}}
[tools.create_credit]
premises = {tool = "payment_status", arguments = {payment = "{payment}"}, fields = ["disputed"]}
expect = {disputed = false}
key = "{request}:{payment}"
key_argument = "idempotency_key"
dedupes_s = 86400
amount = "amount"
[tools.delete_account]
key = "{request}:{account}"
[tools.cancel_order]
error_proves_nothing_done = true
[[limits]]
name = "account:{account}"
limit = 2
per = "day"
counts = true
effects = "mcp.delete_account"
[[limits]]
name = "credits:{request}"
limit = 600
effects = "mcp.create_credit"
"""
REFUND = {"payment": "pi_1", "amount": 500}


class ProxyCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.config = self.folder / "gate.toml"
        self.config.write_text(CONFIG)
        self.server = [sys.executable, str(HERE / "mcp_server.py"), str(self.folder)]

    def environment(self, **more: str) -> dict[str, str]:
        return {"PYTHONPATH": os.environ.get("PYTHONPATH") or str(HERE.parent), "COLUMNS": "100", **more}

    @contextlib.asynccontextmanager
    async def client(self, mode: str = "legacy", **environment: str) -> AsyncIterator[Client]:
        """The official client, in front of the proxy, in front of the server."""
        proxy = [*PROXY, "--config", str(self.config), "--", *self.server]
        args = ["-c", 'echo $$ > "$0"; exec "$@"', str(self.folder / "pid"), *proxy]
        parameters = StdioServerParameters(command="sh", args=args, env=self.environment(**environment))
        with (self.folder / "stderr").open("a") as errors:
            async with Client(stdio_client(parameters, errors), mode=mode) as client:
                yield client

    def ledger(self) -> list[dict[str, Any]]:
        path = self.folder / "ledger"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def outcome(self, result: Any) -> str:
        return str((result.meta or {})[OUTCOME]["outcome"])


class Serving(ProxyCase):
    """Two lives of a proxy: the first is killed in the middle of two calls."""

    def test_it_serves_is_killed_and_goes_on(self) -> None:
        (self.folder / "disputed").write_text("pi_9")
        asyncio.run(self.first_life())
        asyncio.run(self.second_life())

    async def first_life(self) -> None:
        async with self.client() as client:
            await self.passes_everything_else_on(client)
            await self.gates_what_is_named(client)
            await self.refuses_what_is_no_request(client)
            await self.is_killed_in_two_calls(client)

    async def second_life(self) -> None:
        """Now by the revision of the protocol that has no handshake."""
        async with self.client("auto", SHOP_REQUEST="case-2") as client:
            await self.has_found_what_was_done(client)
            await self.reads_premises_and_fills_in_the_key(client)
            await self.holds_its_limits(client)

    async def passes_everything_else_on(self, client: Client) -> None:
        told: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(done)

        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        self.assertIsNone(tools["create_refund"].output_schema)
        self.assertIsNotNone(tools["payment_status"].output_schema)
        self.assertEqual(set(tools["create_credit"].input_schema["properties"]), {"payment", "amount"})
        hours = (await client.read_resource("shop://hours")).contents[0]
        self.assertEqual(getattr(hours, "text", None), "9 to 5")
        counted = await client.call_tool("count", {"upto": 3}, progress_callback=progress)
        self.assertEqual((counted.structured_content, told), ({"result": 3}, [1, 2, 3]))

    async def gates_what_is_named(self, client: Client) -> None:
        case = {"shop.example/request": "case-1"}
        first = await client.call_tool("create_refund", REFUND, meta=case)
        self.assertEqual((first.structured_content["id"], self.outcome(first)), ("re_1", "COMMITTED"))
        again = await client.call_tool("create_refund", REFUND, meta=case)
        self.assertEqual((self.outcome(again), again.is_error), ("COMMITTED", False))
        self.assertIn("re_1", again.content[1].text)
        other = await client.call_tool("create_refund", {**REFUND, "amount": 700}, meta=case)
        self.assertEqual(self.outcome(other), "REFUSED:already_done")
        self.assertEqual(len(self.ledger()), 1)
        failed = await client.call_tool("delete_account", {"account": "locked"}, meta=case)
        self.assertEqual((self.outcome(failed), failed.is_error), ("AMBIGUOUS:no_evidence", False))
        refused = await client.call_tool("cancel_order", {"order": "o_1"}, meta=case)
        self.assertEqual((self.outcome(refused), refused.is_error), ("REFUSED:rejected", False))

    async def refuses_what_is_no_request(self, client: Client) -> None:
        before = self.recorded()
        meta = {"shop.example/request": "case-3"}
        for wrong in ({**REFUND, "amount": "5"}, {**REFUND, "request": "case-4"}, {"payment": "pi_1"}):
            refused = await client.call_tool("create_refund", wrong, meta=meta)
            self.assertTrue(refused.is_error)
            self.assertIn("Nothing was recorded or sent", refused.content[0].text)
        own = await client.call_tool("create_credit", {**REFUND, "idempotency_key": "k"}, meta=meta)
        self.assertTrue(own.is_error)
        with self.assertRaisesRegex(Exception, "no request reference"):
            await client.call_tool("create_refund", REFUND)
        self.assertEqual((self.recorded(), len(self.ledger())), (before, 1))

    async def is_killed_in_two_calls(self, client: Client) -> None:
        """Kill the proxy after the server has acted twice and before it has answered."""
        (self.folder / "hold").touch()
        case = {"shop.example/request": "case-2"}
        calls = [
            asyncio.ensure_future(client.call_tool("create_refund", {"payment": "pi_2", "amount": 7}, meta=case)),
            asyncio.ensure_future(client.call_tool("delete_account", {"account": "a"}, meta=case)),
        ]
        for _ in range(3000):
            if len(self.ledger()) == 3:
                break
            await asyncio.sleep(0.01)
        os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)
        self.assertEqual([isinstance(end, Exception) for end in await asyncio.gather(*calls, return_exceptions=True)],
                         [True, True])  # fmt: skip
        (self.folder / "hold").unlink()

    async def has_found_what_was_done(self, client: Client) -> None:
        told = await client.call_tool("create_refund", {"payment": "pi_2", "amount": 7})
        shown = (told.meta or {})[OUTCOME]
        self.assertEqual((shown["outcome"], shown["via"], told.is_error), ("COMMITTED", "lookup", False))
        self.assertIn('"pi_2"', told.content[1].text)
        told = await client.call_tool("delete_account", {"account": "a"})
        self.assertEqual((self.outcome(told), told.is_error), ("AMBIGUOUS:no_evidence", False))
        self.assertIn("a person has to look", told.content[0].text)
        self.assertEqual(len(self.ledger()), 3)
        said = (self.folder / "stderr").read_text()
        self.assertIn("recovered: COMMITTED", said)
        self.assertIn("recovered: AMBIGUOUS:no_evidence", said)

    async def reads_premises_and_fills_in_the_key(self, client: Client) -> None:
        made = await client.call_tool("create_credit", REFUND)
        self.assertEqual(made.structured_content["key"], (made.meta or {})[OUTCOME]["effect_id"])
        refused = await client.call_tool("create_credit", {**REFUND, "payment": "pi_9"})
        self.assertEqual(self.outcome(refused), "REFUSED:premise_not_met")
        self.assertEqual(len(self.ledger()), 4)

    async def holds_its_limits(self, client: Client) -> None:
        """Killed, open and done effects count alike: 500 of 600 are used, and one of two deletions of an account."""
        over = await client.call_tool("create_credit", {"payment": "pi_3", "amount": 101})
        self.assertEqual(self.outcome(over), "REFUSED:over_budget")
        self.assertIn("credits:case-2", over.content[0].text)
        below_nothing = await client.call_tool("create_credit", {"payment": "pi_3", "amount": -1})
        self.assertIn("a whole number that is not negative). Nothing was recorded", below_nothing.content[0].text)
        rest = await client.call_tool("create_credit", {"payment": "pi_4", "amount": 100})
        self.assertEqual(self.outcome(rest), "COMMITTED")
        for case, outcome in (("case-5", "COMMITTED"), ("case-6", "REFUSED:over_budget")):
            told = await client.call_tool("delete_account", {"account": "a"}, meta={"shop.example/request": case})
            self.assertEqual(self.outcome(told), outcome)
        self.assertEqual(len(self.ledger()), 6)

    def recorded(self) -> int:
        gate = Gate(self.folder / "gate.db")
        try:
            return len(gate.journal.effects())
        finally:
            gate.close()


RAW_SERVER = """
import json, pathlib, sys
ledger = pathlib.Path("ledger")
for line in sys.stdin:
    sys.stderr.write("GOT " + line); sys.stderr.flush()
    message = json.loads(line)
    for one in message if isinstance(message, list) else [message]:
        if "id" not in one or "method" not in one:
            continue
        tool = one["params"]["name"] if one["method"] == "tools/call" else None
        if tool == "act":
            ledger.open("a").write("acted\\n")
        names = ("act", "find", "pay", "undo")
        tools = [{"name": name, "inputSchema": {"type": "object", "properties": {}}} for name in names]
        said = [1] * ledger.exists() if tool == "find" else {"n": 1}
        result = {"content": [], "structuredContent": said} | ({"_meta": 5} if tool == "undo" else {})
        result = {"tools": tools} if one["method"] == "tools/list" else result
        print(json.dumps({"jsonrpc": "2.0", "id": one["id"], "result": result}), flush=True)
"""
RAW_CONFIG = 'journal = "gate.db"\n[request]\nenv = "R"\n[tools.act]\n'
CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"act","arguments":{}%s}}'
HELLO = [
    '{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
]


class Lines(ProxyCase):
    """Lines to the proxy, and those that reach a server, which shows every one."""

    def run_lines(self, *lines: str, **environment: str) -> tuple[int, list[str], list[dict[str, Any]]]:
        """The exit code of a proxy that is given these lines, the lines that the server got, and all answers."""
        done = subprocess.run(
            [*PROXY, "--config", str(self.config), "--", sys.executable, "-c", RAW_SERVER],
            input="".join(f"{line}\n" for line in lines).encode(),
            capture_output=True,
            timeout=60,
            cwd=self.folder,
            env=self.environment(R="case-1", **environment),
        )
        self.errors = done.stderr.decode()
        got = [line[4:] for line in self.errors.split("\n") if line.startswith("GOT ")]
        return done.returncode, got, [json.loads(line) for line in done.stdout.splitlines()]

    def test_killed_anywhere_in_a_call_there_is_one_effect(self) -> None:
        """At its next start the proxy ends what was open, before anybody calls it again."""
        self.config.write_text(RAW_CONFIG + 'lookup = {tool = "find"}\n')
        points = [CrashPoint.AFTER_DISPATCHED]
        if os.environ.get("INTERLOCK_LONG_TESTS"):
            points += [CrashPoint.BEFORE_JOURNAL, CrashPoint.BEFORE_MARK, CrashPoint.AFTER_RESPONSE]
            points += [CrashPoint.AFTER_COMMITTED]
        for number, point in enumerate(points):
            with self.subTest(point=point.value):
                self.config.write_text(self.config.read_text().replace("gate", f"gate{number}", 1))
                (self.folder / "ledger").unlink(missing_ok=True)
                code, _, _ = self.run_lines(*HELLO, CALL % (1, ""), INTERLOCK_CRASH=point.value)
                self.assertEqual(code, -signal.SIGKILL, self.errors)
                code, _, answers = self.run_lines(*HELLO, CALL % (2, ""))
                self.assertEqual((code, (self.folder / "ledger").read_text()), (0, "acted\n"), self.errors)
                recovers = point not in (CrashPoint.BEFORE_JOURNAL, CrashPoint.AFTER_COMMITTED)
                self.assertEqual("recovered: COMMITTED" in self.errors, recovers)
                shown = [answer["result"]["_meta"][OUTCOME] for answer in answers if answer["id"] == 2]
                self.assertEqual([one["outcome"] for one in shown], ["COMMITTED"])

    def test_a_cancelled_call_goes_on_and_nobody_is_answered(self) -> None:
        self.config.write_text(RAW_CONFIG)
        cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
        _, got, answers = self.run_lines(*HELLO, CALL % (1, ""), cancel, '{"jsonrpc":"2.0","id":2,"method":"ping"}')
        self.assertEqual([answer["id"] for answer in answers], ["hello", 2])
        self.assertFalse(any("cancelled" in line for line in got))
        self.assertEqual((self.folder / "ledger").read_text(), "acted\n")

    def test_no_way_around_the_gate(self) -> None:
        self.config.write_text(RAW_CONFIG)
        call = CALL
        lines = [
            '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"act"}}',
            '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"act","arguments":{}}}',
            '{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"act","arguments":{}}}',
            call % (2, ',"task":{}'),
            "{not json",
            "[" * 100000,
            "[" + call % (3, "") + "," + call % ('"3"', "") + ',{"jsonrpc":"2.0","id":4,"method":"ping"}]',
            '{"x":\r' + call % (6, "") + "\r}",
            '{"x":"\u2028' + call.replace('"', '\\"') % (7, "") + '\u2028"}',
            '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"other","arguments":{"x":1.50}}}',
        ]
        code, got, answers = self.run_lines(*lines)
        calls = [line for line in got if '"act"' in line and '"x"' not in line]
        self.assertEqual((len(calls), "interlock-" in calls[0]), (1, True), self.errors)
        self.assertEqual(sum('"x"' in line for line in got), 3)
        self.assertTrue(all(line.isascii() and "\r" not in line for line in got))
        self.assertIn(lines[-1], got)
        by_id = {json.dumps(answer["id"]): answer for answer in answers if answer["id"] is not None}
        self.assertEqual(set(by_id), {"2", "3", '"3"', "4", "5"}, self.errors)
        self.assertTrue(by_id["2"]["result"]["isError"])
        outcomes = [by_id[key]["result"]["_meta"][OUTCOME]["outcome"] for key in ("3", '"3"')]
        self.assertEqual(sorted(outcomes)[0], "COMMITTED")
        self.assertEqual(sum(answer["id"] is None for answer in answers), 3)
        self.assertEqual(code, 0)

    def test_what_the_configuration_says_and_the_server_does_not_is_not_relied_on(self) -> None:
        """Servers pass over arguments that they do not know: a key would be no key, and a lookup would find nothing."""
        self.config.write_text(
            RAW_CONFIG + 'key_argument = "idem"\ndedupes_s = 60\n'
            '[tools.pay]\nlookup = {tool = "find", arguments = {payment = "1"}}\n'
            '[tools.undo]\nlookup = {tool = "gone"}\n'
        )  # fmt: skip
        calls = [(CALL % (number, "")).replace("act", name) for number, name in enumerate(("act", "pay", "undo"))]
        code, got, answers = self.run_lines(*HELLO, *calls)
        told = {answer["id"]: answer["result"]["content"][0]["text"] for answer in answers if answer["id"] != "hello"}
        for number, words in enumerate(
            (
                "act takes no argument idem",
                "find takes no argument payment",
                "the server names no tool gone",
            )
        ):
            self.assertIn(f"({words}, which the configuration", told[number])
            self.assertIn(words, self.errors)
        self.assertEqual((code, [line for line in got if "tools/call" in line]), (0, []))

    def test_an_answer_that_cannot_be_shown_was_given_all_the_same(self) -> None:
        self.config.write_text(RAW_CONFIG + "[tools.undo]\n")
        _, _, answers = self.run_lines(*HELLO, (CALL % (1, "")).replace("act", "undo"))
        self.assertEqual(answers[-1]["result"]["_meta"][OUTCOME]["outcome"], "COMMITTED")

    def test_the_proxy_ends_as_its_server_did_though_the_client_is_still_there(self) -> None:
        self.config.write_text(RAW_CONFIG)
        for ending, code in (("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137)):
            command = [*PROXY, "--config", str(self.config), "--", sys.executable, "-c", f"import os, sys; {ending}"]
            pipe = subprocess.PIPE
            with subprocess.Popen(command, stdin=pipe, stderr=pipe, env=self.environment(R="r")) as proxy:
                self.assertEqual(proxy.wait(30), code)
                assert proxy.stderr is not None
                self.assertEqual(proxy.stderr.read(), b"")


class Streams(unittest.TestCase):
    def test_lines_and_pieces(self) -> None:
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb", buffering=0) as stream, patch.object(wire, "MAX_LINE", 10):
            os.write(writing, b"a\n\n0123456789bc\nd")
            os.close(writing)
            asyncio.run(asyncio.wait_for(wire.hung_up(stream), 5))  # although nothing was read
            self.assertEqual(list(wire.lines(stream)), [b"a\n", b"\n", b"0123456789", b"bc\n", b"d"])

    def test_a_line_that_is_too_long_ends_the_server(self) -> None:
        async def listen() -> None:
            async def take(line: bytes) -> None:
                raise AssertionError(line)

            server = await Server.start([sys.executable, "-c", "print('x' * 1500)"], take)
            try:
                await server.listen()
            finally:
                await server.end()

        with patch.object(wire, "MAX_LINE", 1000), self.assertRaisesRegex(ServerGone, "more than 1000 bytes"):
            asyncio.run(listen())

    def test_what_is_no_list_of_tools(self) -> None:
        for tools in (None, {"a": 1}, ["x"], [{"name": 1}], [{}], [{"name": "a", "inputSchema": [1]}]):
            with self.assertRaisesRegex(ServerError, "no list of tools"):
                schemas_of({"tools": tools})


class Configuration(ProxyCase):
    def test_the_one_in_the_documentation_is_understood(self) -> None:
        page = (HERE.parent / "docs" / "adapters.md").read_text(encoding="utf-8")
        self.config.write_text(page.split("```toml\n")[1].split("```")[0])
        rule = load(self.config).rules["create_refund"]
        self.assertEqual((rule.effect, rule.key_argument), ("shop.refund", "idempotency_key"))

    def test_what_is_wrong_is_said_before_anything_starts(self) -> None:
        head = 'journal = "gate.db"\n[request]\nenv = "R"\n'
        for text, words in (
            ("", "request reference comes from"),
            (head, "tools is missing"),
            (head + '[tools.a]\nkey = "{id}"\n', "key must name {request}"),
            (head + '[tools.a]\nkey = "{request.x}"\n', "names in braces"),
            (head + "[tools.a]\nkees = 1\n", "kees means nothing"),
            (head + '[tools.a]\n[[limits]]\nname = "a"\nlimit = 5\n', "say which argument is the amount"),
            (head + '[tools.a]\n[[limits]]\nname = "a"\nlimit = 5\neffects = "b"\n', "is for no gated tool"),
            (head + '[tools.a]\n[[limits]]\nname = "a"\nlimit = -5\ncounts = true\n', "not negative"),
            (head + '[tools.a]\n[[limits]]\nname = "{a.b}"\nlimit = 5\n', "names in braces"),
            (head + '[tools.a]\n[[limits]]\nname = "a"\nlimit = 5\nper = "week"\ncounts = true\n', "per='day'"),
            (head + "[tools.a]\ndedupes_s = 5\n", "key_argument"),
            (head + '[tools.a]\nlookup = {tool = "a"}\n', "gated itself"),
            (head + "[tools.a]\nlookup = {}\n", "tool is missing"),
            (head + '[tools.a]\neffect = "x"\n[tools.b]\neffect = "x"\n', "two tools"),
            (head + "[tools.a]\nsend_timeout_s = true\n", "send_timeout_s"),
            ("[", "gate.toml"),
            (head.replace("R", ""), "env is empty"),
            ('signing = ""\n' + head, "signing is empty"),
            ("wait_s = nan\n" + head, "wait_s is a number of seconds"),
            (head + "[tools.a]\nsend_timeout_s = 0\n", "send_timeout_s is a number of seconds, above 0"),
            (head + "[tools.a]\nlookup_lag_s = 5\n", "there is no lookup"),
            (head + '[tools.a]\nkey_argument = ""\n', "key_argument is empty"),
            (head + '[tools.a]\nlookup = {tool = "b", arguments = {c = 2026-01-01}}\n', "no JSON value"),
            (head + '[tools.a]\nlookup = {tool = "b", arguments = {c = {d = [inf]}}}\n', "no JSON value"),
            (head + '[tools.a]\nlookup = {tool = "b", arguments = {c = ["{d.e}"]}}\n', "names in braces"),
            (head + '[tools.a]\npremises = {tool = "b", arguments = {c = ["{key}"]}}\n', "cannot take {key}"),
            (head + '[tools.a]\npremises = {tool = "b", fields = [1]}\n', "list of names"),
            (head + '[tools.a]\nexpect = {c = 1}\npremises = {tool = "b", fields = ["d"]}\n', "not among fields"),
            (head + f"[tools.a]\nexpect = {{c = {'[' * 5000}{']' * 5000}}}\n", "nested too deep"),
        ):
            with self.subTest(words=words):
                self.config.write_text(text)
                with self.assertRaises(DefinitionError) as caught:
                    load(self.config)
                self.assertIn(words, str(caught.exception))

    def test_templates_are_filled_in_however_deep_they_are(self) -> None:
        self.assertEqual(
            filled({"a": ["{n}", {"b": "{t}-{n}", "c": "{{}}"}], "d": 1.5}, {"n": 1, "t": "x"}),
            {"a": [1, {"b": "x-1", "c": "{}"}], "d": 1.5},
        )

    def test_no_two_calls_fill_a_key_in_alike(self) -> None:
        keys = {
            fill("{request}:{a}:{b}", {"request": "r", "a": a, "b": b}, ("request",))
            for a, b in (("x:y", "z"), ("x", "y:z"), ('x":"y', "z"), (1, "1"), ("1", 1), ([1], 1))
        }
        self.assertEqual(len(keys), 6)


if __name__ == "__main__":
    unittest.main()
