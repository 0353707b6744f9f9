"""The agent's process: it declares the effect as the cell's contract says and carries out a list of steps.

Its setup is one JSON argument::

    {"url": …, "account": …, "contract": …, "journal": path, "out": path, "steps": [["call", 5.0], …], "read_s": [0.2]}

``read_s`` says how patiently the answers to the first requests are awaited (seconds); later ones get ``PATIENT_S``.

Steps: ``["propose"]``, ``["call", wait_s]``, ``["recover", wait_s]``, ``["redecide", effect_id, amount]``,
``["amount", cents]`` (for the calls that follow), ``["version", n]``, ``["history"]``. What each step was told is
appended to ``out`` as one JSON line, so that an answer that was given before a death counts too.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from interlock_tools import (
    Budget,
    DefiniteNo,
    Gate,
    Grant,
    InProgress,
    NotDecidable,
    NotSent,
    Outcome,
    PreconditionFailed,
    RateLimited,
    StoredError,
)
from interlock_tools.testing.crash import CrashPoint, reach
from scenarios.crash.contracts import CONTRACTS, SEND_TIMEOUT_S, Contract

CASE = "case-1"
AMOUNT = 2000
PATIENT_S = 10.0
LIMIT = 3000
"""Cents that all effects of a case may take: room for one."""


class Client:
    """One account at the service."""

    def __init__(self, url: str, account: str, read_s: list[float]) -> None:
        where = urlsplit(url)
        self._host, self._port = where.hostname or "", where.port
        self._path = f"/a/{account}"
        self._read_s = list(read_s)

    def get(self, path: str) -> tuple[int, Any]:
        """Read something. Raises if the service does not answer or cannot."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=10)
        try:
            connection.request("GET", self._path + path)
            response = connection.getresponse()
            status, body = response.status, json.loads(response.read())
        finally:
            connection.close()
        if status not in (200, 404):
            raise RuntimeError(f"GET {path}: {status}")
        return status, body

    def do(self, body: Any, headers: dict[str, str], on_send: Any) -> Any:
        """One request for an effect, with ``on_send`` (if there is one) right before its bytes."""
        patience_s = self._read_s.pop(0) if self._read_s else PATIENT_S
        connection = http.client.HTTPConnection(self._host, self._port, timeout=patience_s)
        try:
            connection.connect()
        except OSError as error:
            raise NotSent(str(error)) from error
        try:
            data = json.dumps(body).encode()
            connection.putrequest("POST", f"{self._path}/do")
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                connection.putheader(name, value)
            if on_send is not None:
                on_send()
            connection.putheader("X-Handed-Over", repr(time.clock_gettime(time.CLOCK_BOOTTIME)))
            connection.endheaders(data)
            if on_send is not None:
                on_send.written()
            else:
                reach(CrashPoint.IN_FLIGHT)
            response = connection.getresponse()
            return self._judge(response, json.loads(response.read()))
        finally:
            connection.close()

    @staticmethod
    def _judge(response: http.client.HTTPResponse, body: Any) -> Any:
        """What the answer proves."""
        status, replayed = response.status, response.getheader("Idempotent-Replayed") == "true"
        if status == 200:
            return {"id": body["id"]}
        word = str(body.get("error"))
        if status == 402:
            raise DefiniteNo(word, code=word, stored=replayed)
        if status == 409:
            raise InProgress(word)
        if status == 412:
            raise PreconditionFailed(word)
        if status == 429:
            raise RateLimited(word, retry_after=0.02)
        if status == 500 and replayed:
            raise StoredError(word)
        raise RuntimeError(f"status {status}: {word}")


def declare(gate: Gate, contract: Contract, client: Client) -> Any:
    """The effect under this contract."""

    def facts(idempotency_key: str) -> dict[str, Any]:
        without = "" if contract.own_seen else f"?without={idempotency_key}"
        _, found = client.get(f"/facts{without}")
        return found if contract.enforces else {"owner": found["owner"]}

    def approval() -> Grant | None:
        status, found = client.get("/approval")
        return Grant(found["id"], max_amount=LIMIT) if status == 200 else None

    def find(idempotency_key: str) -> Any:
        status, found = client.get(f"/find?key={idempotency_key}")
        return found if status == 200 else None

    def expected(version: int) -> dict[str, Any]:
        return {"version": version} if contract.enforces else {}

    def send(case: str, amount: int, version: int, *, idempotency_key: str, on_send: Any = None) -> Any:
        headers = {"Idempotency-Key": idempotency_key}
        if contract.enforces:
            headers["If-Version"] = str(version)
        return client.do({"case": case, "amount": amount}, headers, on_send)

    def send_without_hook(case: str, amount: int, version: int, *, idempotency_key: str) -> Any:
        return send(case, amount, version, idempotency_key=idempotency_key)

    window = contract.dedupes_s
    return gate.effect(
        "generic.do",
        key=lambda case: case,
        premises=facts,
        expect=expected,
        allowed=approval,
        budget=lambda case, amount: Budget(f"case:{case}", amount, LIMIT),
        dedupes=True if window == -1 else timedelta(seconds=window) if window else None,
        enforces=("version",) if contract.enforces else (),
        never_true_again=("version",) if contract.final else (),
        lookup=find if contract.lookup else None,
        lookup_lag=timedelta(seconds=contract.lag_s),
        send_timeout=timedelta(seconds=SEND_TIMEOUT_S),
        clock_skew=timedelta(0),
        marks=contract.marks,
    )(send if contract.on_send else send_without_hook)


class Worker:
    """Carries out the steps of one setup."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self._out = setup["out"]
        self._steps = setup["steps"]
        client = Client(setup["url"], setup["account"], setup["read_s"])
        self._gate = Gate(setup["journal"], retry=5.0)
        self._effect = declare(self._gate, CONTRACTS[setup["contract"]], client)
        self._arguments: dict[str, Any] = {"case": CASE, "amount": AMOUNT, "version": 1}

    def run(self) -> None:
        for step in self._steps:
            try:
                told = getattr(self, f"_{step[0]}")(*step[1:])
            except NotDecidable as error:
                told = {"error": "NotDecidable", "words": str(error)}
            self._tell({"step": step[0], "told": told})

    def _tell(self, line: dict[str, Any]) -> None:
        fd = os.open(self._out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(fd, (json.dumps(line) + "\n").encode())
        os.close(fd)

    def _propose(self) -> Any:
        return self._effect.propose(**self._arguments).to_json()

    def _call(self, wait_s: float) -> Any:
        outcome: Outcome = self._effect.invoke((), self._arguments, wait=wait_s)
        return outcome.to_json()

    def _recover(self, wait_s: float) -> Any:
        return [outcome.to_json() for outcome in self._gate.recover(wait=wait_s)]

    def _redecide(self, effect_id: str, amount: int) -> Any:
        arguments = {**self._arguments, "amount": amount}
        told = self._effect.redecide(effect_id, by="a person", arguments=arguments).to_json()
        self._arguments = arguments
        return told

    def _amount(self, cents: int) -> Any:
        self._arguments["amount"] = cents
        return cents

    def _version(self, number: int) -> Any:
        self._arguments["version"] = number
        return number

    def _history(self) -> Any:
        """Every effect of the journal with its entries, and what the case's budget holds."""
        effects = []
        for row in self._gate.journal.effects(0, 100):
            entries = [{"kind": e.kind.value, "body": e.body} for e in self._gate.history(row.effect_id)]
            effects.append({"effect_id": row.effect_id, "phase": row.phase, "entries": entries})
        return {"effects": effects, "used": self._gate.budget(f"case:{CASE}").used}


if __name__ == "__main__":
    Worker(json.loads(sys.argv[1])).run()
