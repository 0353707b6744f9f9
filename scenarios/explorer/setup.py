"""What is explored: a contract, how many hosts, and how much may go wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

from interlock_tools.core.decide import FOREVER, ServiceContract

from .service import Rules

TIMEOUT = 1
LAG = 1
SKEW = 1
LEASE = 1
WINDOW = 4
"""Ticks that stand for milliseconds: the smallest numbers that keep the inequalities between them apart."""


@dataclass(frozen=True)
class Setup:
    """One world to explore.

    Attributes:
        name: for ``--contract``.
        contract: what the core is told.
        rules: what the service does.
        hosts: 1: a death can be proven; 2: one worker process on each of two hosts, which share the journal alone.
        lease: lease of a session on two hosts.
        crashes: how often a process is killed, a machine restarted, a session lost, or the journal unwritable.
        faults: how often the service or the network answers badly or not at all.
        moves: how often a fact moves.
        unread: how often checks or a lookup cannot be read.
        restarts: whether a machine may restart. On two hosts a clock that means nothing here is explored without.
        stops: whether a process may stop between the check in ``on_send`` and the bytes.
        gatherers: how many views are gathered at the same time. With the journal's compare-and-set one is enough:
            a view whose append is refused has had no effect on anything.
        slow: gathering a view and appending take several moves, and ticks may pass in between.
        patience: ticks that may pass while one worker gathers a view and appends. Enough to pass the dedup window.
        exact: tell apart what the production rules do not look at, for rules that have been broken.
    """

    name: str
    contract: ServiceContract
    rules: Rules
    hosts: int = 1
    lease: int = LEASE
    crashes: int = 1
    faults: int = 1
    moves: int = 2
    unread: int = 1
    restarts: bool = True
    stops: bool = True
    gatherers: int = 1
    exact: bool = False
    slow: bool = False
    patience: int = 1

    @property
    def title(self) -> str:
        return f"{self.name}, {self.hosts} host{'s' if self.hosts > 1 else ''}"

    @property
    def most_sends(self) -> int:
        """More sends than this are a loop: each but the first has a crash, a fault or two failing hand-overs behind."""
        return 3 + 2 * self.crashes + 2 * self.faults


def make(
    name: str,
    *,
    dedupes: int = 0,
    enforces: bool = False,
    final: bool = False,
    lookup: bool = False,
    strict: bool = False,
    timeout: int = TIMEOUT,
    lag: int = LAG,
) -> Setup:
    """Build a setup whose service keeps exactly what the contract says."""
    contract = ServiceContract(
        dedupes_ms=FOREVER if dedupes < 0 else dedupes,
        enforces=frozenset({"fact"}) if enforces else frozenset(),
        never_true_again=frozenset({"fact"}) if final else frozenset(),
        has_lookup=lookup,
        lookup_lag_ms=lag if lookup else 0,
        send_timeout_ms=timeout,
        clock_skew_ms=SKEW if dedupes > 0 else 0,
        strict=strict,
    )
    rules = Rules(dedupes, enforces, final, False, lookup, lag, timeout)
    return Setup(name, contract, rules, patience=2 if dedupes > 0 else 1)


def _contracts() -> dict[str, Setup]:
    made = [
        make("neither"),
        make("lookup", lookup=True),
        make("dedupes", dedupes=WINDOW),
        make("dedupes_forever", dedupes=-1),
        make("enforces", enforces=True),
        make("dedupes+lookup", dedupes=WINDOW, lookup=True),
        make("dedupes_forever+lookup", dedupes=-1, lookup=True),
        make("enforces+lookup", enforces=True, lookup=True),
        make("enforces_final+lookup", enforces=True, final=True, lookup=True),
        make("dedupes+enforces", dedupes=WINDOW, enforces=True),
        make("dedupes+enforces+lookup", dedupes=WINDOW, enforces=True, lookup=True),
    ]
    return {setup.name: setup for setup in made}


CONTRACTS = _contracts()
"""Every contract, on one host."""


TWO_HOSTS = {"hosts": 2, "restarts": False, "stops": False, "moves": 1, "unread": 0}
"""On two hosts what one host has shown already is left out, and everything about lost sessions is added."""


def setups() -> list[Setup]:
    """Every contract on one host and on two; on two also with ``strict``."""
    found = []
    for setup in CONTRACTS.values():
        found.append(setup)
        found.append(replace(setup, **TWO_HOSTS))
        strict = replace(setup.contract, strict=True)
        found.append(replace(setup, name=f"{setup.name}+strict", contract=strict, **TWO_HOSTS))
    return found


def find(name: str, hosts: int = 1) -> Setup:
    """Return the setup of that name. Raises ``KeyError``."""
    for setup in setups():
        if setup.name == name and setup.hosts == hosts:
            return setup
    raise KeyError(name)
