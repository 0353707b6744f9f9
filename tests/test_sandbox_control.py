"""The sandboxes' control plane, over real HTTP against the smallest service."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scenarios.sandbox import ControlClient, ControlError, SandboxError, SandboxProcess
from scenarios.sandbox.clock import Clock
from scenarios.sandbox.faults import BadRule, parse_rule
from scenarios.sandbox.process import ROOT


def send(url: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """One request on a connection of its own: status and JSON. Raises OSError or HTTPException if it is cut."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
    try:
        connection.request(method, path, json.dumps(body), headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def send_and_leave(url: str, path: str, body: Any) -> http.client.HTTPConnection:
    """Send a whole request and do not read the answer; the caller closes the connection."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
    connection.request("POST", path, json.dumps(body))
    return connection


class ControlPlane(unittest.TestCase):
    sandbox: SandboxProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = SandboxProcess("echo").start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.stop()

    def setUp(self) -> None:
        self.url = self.sandbox.url
        self.control = self.sandbox.control
        self.control.reset()

    def tearDown(self) -> None:
        self.assertEqual(self.sandbox.printed(), "", "the sandbox itself reported a defect")

    def notes(self) -> list[Any]:
        return [note["note"] for note in self.control.ledger()["notes"]]

    def add(self, note: str) -> tuple[int, Any]:
        return send(self.url, "POST", "/notes", note)

    def test_requests_are_counted_with_the_headers_of_interest_and_no_credential(self) -> None:
        headers = {"Authorization": "Bearer hunter2", "X-Api-Key": "hunter2", "Idempotency-Key": "k1"}
        send(self.url, "POST", "/notes?access_token=hunter2&a=b", "one", headers)
        send(self.url, "GET", "/notes")
        self.assertEqual(self.control.counts(), {"POST /notes": 1, "GET /notes": 1})
        first, second = self.control.requests()
        self.assertEqual(first["headers"]["idempotency-key"], "k1")
        self.assertNotIn("hunter2", json.dumps(self.control.requests()))
        self.assertEqual((first["stage"], first["status"], first["answer_status"]), ("finished", 201, 201))
        self.assertEqual(len(first["applied"]), 1)
        for clock in ("wall", "monotonic", "boottime"):
            self.assertLessEqual(first["received"][clock], second["received"][clock])
        self.assertEqual(self.control.count("POST"), 1)

    def test_arrival_times_compare_with_this_process_clock(self) -> None:
        before = time.monotonic()
        self.add("one")
        after = time.monotonic()
        self.assertTrue(before <= self.control.requests()[0]["received"]["monotonic"] <= after)

    def test_a_held_request_is_applied_on_release_though_its_client_has_gone(self) -> None:
        self.control.hold("POST", "/notes")
        client = send_and_leave(self.url, "/notes", "late")
        self.control.received(1, "POST", "/notes", stage="held")
        client.close()
        self.assertEqual(self.notes(), [])
        held = self.control.held()
        self.assertEqual(self.control.release(held[0]["n"]), [held[0]["n"]])
        self.assertEqual(self.notes(), ["late"])
        self.assertIsNotNone(self.control.requests("POST")[0]["status"])

    def test_a_held_request_is_applied_after_its_time(self) -> None:
        self.control.hold("POST", "/notes", seconds=0.05)
        send_and_leave(self.url, "/notes", "late").close()
        self.control.received(1, "POST", "/notes", stage="applied")
        self.assertEqual(self.notes(), ["late"])

    def test_a_held_request_can_be_dropped(self) -> None:
        self.control.hold("POST", "/notes", executing=True)
        with contextlib.closing(send_and_leave(self.url, "/notes", "never")) as client:
            (held,) = self.control.received(1, "POST", "/notes", stage="held")
            self.assertEqual(self.control.ledger()["executing"], [held["n"]])
            self.control.release(apply=False)
            self.assertRaises(http.client.RemoteDisconnected, client.getresponse)
        self.control.received(1, "POST", "/notes", stage="finished")
        self.assertEqual((self.notes(), self.control.ledger()["executing"]), ([], []))

    def test_a_client_that_waits_out_a_hold_gets_the_answer(self) -> None:
        self.control.hold("POST", "/notes", seconds=0.05)
        self.assertEqual(self.add("slow")[0], 201)
        self.control.hold("POST", "/notes", seconds=0.05, then="cut")
        self.assertRaises(http.client.RemoteDisconnected, self.add, "slow, then cut")
        self.assertEqual(self.notes(), ["slow", "slow, then cut"])

    def test_a_client_that_is_killed_in_flight_has_sent_its_request(self) -> None:
        self.control.hold("POST", "/notes")
        script = "import sys, http.client as h; c = h.HTTPConnection(sys.argv[1]); c.request('POST', '/notes', '1')\n"
        address = urlsplit(self.url).netloc
        child = subprocess.Popen([sys.executable, "-c", script + "c.getresponse()", address])
        self.control.received(1, "POST", "/notes")
        child.send_signal(signal.SIGKILL)
        self.assertEqual(child.wait(20), -signal.SIGKILL)
        self.control.release()
        self.assertEqual(self.notes(), [1])

    def test_apply_then_status_applies_and_answers_in_the_shape_of_the_service(self) -> None:
        self.control.fault("apply_then_status", "POST", "/notes", status=503)
        self.assertEqual(self.add("one"), (503, {"echo_error": 503}))
        self.assertEqual(self.add("two")[0], 201)
        self.assertEqual(self.notes(), ["one", "two"])

    def test_apply_then_cut_applies_and_gives_no_answer(self) -> None:
        self.control.fault("apply_then_cut", "POST", "/notes")
        self.assertRaises(http.client.RemoteDisconnected, self.add, "one")
        self.assertEqual(self.notes(), ["one"])

    def test_cut_before_applies_nothing(self) -> None:
        self.control.fault("cut_before", "POST", "/notes", times=None)
        for _ in range(2):
            self.assertRaises(http.client.RemoteDisconnected, self.add, "one")
        self.assertEqual((self.notes(), self.control.counts()), ([], {"POST /notes": 2}))

    def test_answer_gives_status_body_and_headers_and_applies_nothing(self) -> None:
        self.control.fault(
            "answer", "POST", "/notes", status=429, answer={"slow": "down"}, headers={"Retry-After": "7"}
        )
        self.assertEqual(self.add("one"), (429, {"slow": "down"}))
        self.assertEqual(self.notes(), [])

    def test_a_rule_picks_method_path_body_and_the_nth_match(self) -> None:
        self.control.fault("cut_before", "POST", "/notes", body="two", nth=2)
        for note in ("one", "two", "one"):
            self.add(note)
        self.assertRaises(http.client.RemoteDisconnected, self.add, "two")
        self.add("two")
        self.assertEqual(self.notes(), ["one", "two", "one", "two"])
        (rule,) = self.control.rules()
        self.assertEqual((rule["matched"], rule["used"]), (3, 1))

    def test_a_repeated_application_is_a_second_effect_of_one_request(self) -> None:
        self.control.fault("hold", "POST", "/notes", seconds=0, applications=2)
        self.add("twice")
        self.assertEqual((self.notes(), self.control.count("POST")), (["twice", "twice"], 1))

    def test_latency_delays_and_goes_with_other_rules(self) -> None:
        self.control.latency(0.1, "POST")
        self.control.fault("answer", "POST", status=500)
        self.assertEqual(self.add("one")[0], 500)
        slow = self.control.requests("POST")[0]
        send(self.url, "GET", "/notes")
        fast = self.control.requests("GET")[0]
        lasted = [r["answered"]["monotonic"] - r["received"]["monotonic"] for r in (slow, fast)]
        self.assertGreater(lasted[0], lasted[1])

    def test_rules_can_be_removed(self) -> None:
        first = self.control.fault("cut_before", times=None)
        self.control.fault("answer", times=None, status=418)
        self.control.clear_faults(first)
        self.assertEqual(self.add("one")[0], 418)
        self.control.clear_faults()
        self.assertEqual(self.add("one")[0], 201)

    def test_what_is_scheduled_by_the_clock_happens_when_the_clock_gets_there(self) -> None:
        self.control.freeze()
        start = self.control.now()
        send(self.url, "POST", "/later?seconds=20", "second")
        send(self.url, "POST", "/later?seconds=10", "first")
        self.control.advance(9)
        self.assertEqual(self.notes(), [])
        self.control.advance(3600)
        written = self.control.ledger()["notes"]
        self.assertEqual(
            [(note["note"], round(note["at"] - start)) for note in written], [("first", 10), ("second", 20)]
        )
        self.assertEqual(round(self.control.now() - start), 3609)
        self.control.set_clock(start)
        self.assertEqual(self.control.now(), start)

    def test_what_is_scheduled_also_happens_as_real_time_passes(self) -> None:
        send(self.url, "POST", "/later?seconds=0.05", "soon")
        deadline = time.monotonic() + 20
        while not self.notes() and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        self.assertEqual(self.notes(), ["soon"])

    def test_waiting_for_a_request_that_does_not_come_says_what_did(self) -> None:
        self.add("one")
        with self.assertRaises(ControlError) as caught:
            self.control.received(2, "POST", "/notes", timeout_s=0.05)
        self.assertEqual(caught.exception.status, 408)
        self.assertIn("POST /notes (finished)", str(caught.exception))

    def test_a_body_that_breaks_off_is_never_applied(self) -> None:
        where = urlsplit(self.url)
        client = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
        client.putrequest("POST", "/notes")
        client.putheader("Content-Length", "100")
        client.endheaders(b'"half')
        self.control.received(1, "POST", stage="arriving")
        client.close()
        deadline = time.monotonic() + 20
        while self.control.requests()[0]["stage"] != "incomplete" and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        self.assertEqual(
            (self.control.requests()[0]["stage"], self.notes(), self.control.counts()), ("incomplete", [], {})
        )

    def test_reset_forgets_state_rules_records_clock_and_held_requests(self) -> None:
        self.add("one")
        self.control.hold("POST", "/notes")
        self.control.advance(1000)
        with contextlib.closing(send_and_leave(self.url, "/notes", "held")) as client:
            self.control.received(1, "POST", stage="held")
            self.control.reset()
            self.assertRaises(http.client.RemoteDisconnected, client.getresponse)
        self.assertEqual((self.notes(), self.control.requests(), self.control.rules()), ([], [], []))
        self.assertLess(abs(self.control.clock()["offset_s"]), 1)

    def test_reset_forgets_a_request_that_is_still_being_delayed(self) -> None:
        self.control.latency(0.2, "POST")
        with contextlib.closing(send_and_leave(self.url, "/notes", "slow")) as client:
            self.control.received(1, "POST")
            self.control.reset()
            self.assertRaises(http.client.RemoteDisconnected, client.getresponse)
        self.assertEqual(self.notes(), [])

    def test_actions_are_named_and_called(self) -> None:
        self.assertEqual(list(self.control.actions()), ["add"])
        self.control.action("add", note="by a person")
        self.assertEqual(self.notes(), ["by a person"])

    def test_what_makes_no_sense_is_refused_in_words(self) -> None:
        for call in (
            lambda: self.control.fault("explode"),
            lambda: self.control.fault("latency"),
            lambda: self.control.fault("hold", path="("),
            lambda: self.control.fault("hold", colour="red"),
            lambda: self.control.release(99),
            lambda: self.control.advance(-1),
            lambda: self.control.action("nothing"),
            lambda: self.control.action("add", colour="red"),
            lambda: self.control.received(1, stage="nowhere"),
        ):
            with self.assertRaises(ControlError) as caught:
                call()
            self.assertIn(caught.exception.status, (400, 404))

    def test_there_is_a_page_for_people(self) -> None:
        where = urlsplit(self.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
        connection.request("GET", "/_control")
        response = connection.getresponse()
        self.assertEqual(response.getheader("content-type"), "text/html; charset=utf-8")
        self.assertIn(b"echo sandbox", response.read())
        connection.close()

    def test_many_clients_at_once_each_count_once(self) -> None:
        threads = [threading.Thread(target=self.add, args=(str(n),)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        self.assertEqual(sorted(self.notes(), key=int), [str(n) for n in range(16)])
        self.assertEqual(self.control.counts(), {"POST /notes": 16})


class Processes(unittest.TestCase):
    def test_one_process_serves_several_on_ports_of_their_own_and_ends_with_the_block(self) -> None:
        with SandboxProcess("echo") as sandbox:
            pid, url = sandbox.pid, sandbox.url
            self.assertEqual(sandbox.control.health()["pid"], pid)
            self.assertEqual(sandbox.environment, {"ECHO_URL": url})
            self.assertTrue(url.startswith("http://127.0.0.1:"))
        self.assertRaises(ControlError, ControlClient(url).health)
        self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_a_sandbox_that_cannot_start_says_why(self) -> None:
        with self.assertRaisesRegex(SandboxError, "no sandbox named 'nothing'"):
            SandboxProcess("nothing").start()
        with self.assertRaisesRegex(SandboxError, "takes no options"):
            SandboxProcess("echo", options={"echo.colour": "red"}).start()

    def test_it_dies_with_its_parent(self) -> None:
        script = (
            "import sys, time; from scenarios.sandbox import SandboxProcess\n"
            "s = SandboxProcess('echo').start(); print(s.url, flush=True); sys.stdin.read()"
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert parent.stdout is not None and parent.stdin is not None
        control = ControlClient(parent.stdout.readline().strip())
        self.assertEqual(control.health()["service"], "echo")
        parent.kill()
        parent.wait(20)
        parent.stdout.close()
        parent.stdin.close()
        deadline = time.monotonic() + 20
        with self.assertRaises(ControlError):
            while time.monotonic() < deadline:
                control.health()
                threading.Event().wait(0.05)

    def test_from_the_command_line(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ready = Path(folder) / "ready.json"
            command = [sys.executable, "-m", "scenarios.sandbox", "echo", "--ready-file", str(ready)]
            child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            assert child.stdout is not None
            lines = [child.stdout.readline(), child.stdout.readline()]
            description = json.loads(ready.read_text(encoding="utf-8"))
            url = description["services"]["echo"]["url"]
            self.assertEqual(lines[1], f"export ECHO_URL={url}\n")
            self.assertEqual(description["pid"], child.pid)
            child.terminate()
            self.assertEqual(child.wait(20), 0)
            child.stdout.close()


class Rules(unittest.TestCase):
    def test_a_rule_is_checked_when_it_is_made(self) -> None:
        for bad in ({}, {"action": "answer", "nth": 0}, {"action": "hold", "then": "sing"}):
            self.assertRaises(BadRule, parse_rule, bad)


class ClockAlone(unittest.TestCase):
    def test_callbacks_see_the_moment_they_were_due_and_may_schedule_more(self) -> None:
        clock = Clock()
        clock.freeze(True)
        start = clock.now()
        seen: list[float] = []

        def tick() -> None:
            seen.append(clock.now() - start)
            clock.call_later(10, tick)

        clock.call_later(10, tick)
        cancelled = clock.call_later(15, lambda: seen.append(-1))
        cancelled.cancel()
        self.assertEqual(clock.advance(35), 3)
        self.assertEqual([round(moment) for moment in seen], [10, 20, 30])
        self.assertEqual(round(clock.now() - start), 35)


if __name__ == "__main__":
    unittest.main()
