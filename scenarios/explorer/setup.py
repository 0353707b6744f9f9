"""What is explored: a contract, how many hosts, and how much may go wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

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
        stops: whether a process may stop between the check in ``on_send`` and the bytes. Never where the key expires:
            that is a stated limit.
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
        words = [self.name, f"{self.hosts} host" + "s" * (self.hosts > 1)]
        counts = {"crash": self.crashes, "fault": self.faults, "move": self.moves, "unread": self.unread}
        words.append(" ".join(f"{count} {what}" for what, count in counts.items()))
        words += ["slow"] * self.slow + [f"{self.gatherers} gather"] * (self.gatherers > 1)
        return ", ".join(words)

    @property
    def most_sends(self) -> int:
        """More sends than this are a loop.

        Behind each but the first is a crash, a fault, an enforced fact that
        moved and moved back, or a hook that refused because the window had
        closed since the dispatch: for one send and then for the one that relied
        on it, and where clocks disagree once more in each tick.
        """
        moved = 1 if self.rules.enforces and self.moves > 1 else 0
        refused = 0 if self.rules.dedupes <= 0 else 2 if self.hosts == 1 else self.rules.dedupes
        return 1 + self.crashes + self.faults + moved + refused


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
    window = dedupes > 0
    return Setup(name, contract, rules, stops=not window, patience=2 if window else 1)


def _contracts(timeout: int = TIMEOUT, lag: int = LAG, window: int = WINDOW) -> dict[str, Setup]:
    build = partial(make, timeout=timeout, lag=lag)
    made = [
        build("neither"),
        build("lookup", lookup=True),
        build("dedupes", dedupes=window),
        build("dedupes_forever", dedupes=-1),
        build("enforces", enforces=True),
        build("dedupes+lookup", dedupes=window, lookup=True),
        build("dedupes_forever+lookup", dedupes=-1, lookup=True),
        build("enforces+lookup", enforces=True, lookup=True),
        build("enforces_final+lookup", enforces=True, final=True, lookup=True),
        build("dedupes+enforces", dedupes=window, enforces=True),
        build("dedupes+enforces+lookup", dedupes=window, enforces=True, lookup=True),
    ]
    return {setup.name: setup for setup in made}


CONTRACTS = _contracts()
"""Every contract, on one host."""


TWO_HOSTS: dict[str, Any] = {"hosts": 2, "restarts": False, "stops": False, "moves": 1, "unread": 0}
"""On two hosts what one host has shown already is left out, and everything about lost sessions is added."""


def _strict(setup: Setup) -> Setup:
    return replace(setup, name=f"{setup.name}+strict", contract=replace(setup.contract, strict=True))


def setups() -> list[Setup]:
    """Every contract on one host and on two; on two also with ``strict``."""
    found = []
    for setup in CONTRACTS.values():
        two = replace(setup, **TWO_HOSTS)
        found += [setup, two, _strict(two)]
    return found


def find(name: str, hosts: int = 1) -> Setup:
    """Return the setup of that name. Raises ``KeyError``."""
    for setup in setups():
        if setup.name == name and setup.hosts == hosts:
            return setup
    raise KeyError(name)


LARGE = frozenset({"dedupes+lookup", "dedupes_forever+lookup", "enforces_final+lookup"})
"""Explored on two hosts without faults in the quick plan, as all that combine a window with ``enforces`` are."""


def quick() -> list[Setup]:
    """Every contract at one crash, complete, in about a minute of one processor."""
    plan = []
    for setup in setups():
        combined = setup.rules.dedupes > 0 and setup.rules.enforces
        if combined:
            setup = replace(setup, moves=1, unread=0)
        if setup.hosts > 1 and (combined or setup.contract.strict or setup.name in LARGE):
            setup = replace(setup, faults=0)
        plan.append(setup)
    for name in ("lookup", "enforces+lookup"):
        plan.append(replace(find(name, 2), faults=0, unread=1))
    # What gathering a view in one move leaves out, for the contracts that it could matter for.
    for name in ("neither", "lookup", "dedupes"):
        plan.append(replace(find(name), slow=True, faults=0, moves=1))
    plan.append(replace(find("neither"), slow=True, gatherers=2, moves=1, unread=0))
    return plan


def full() -> list[Setup]:
    """Every contract at one crash with every fault, at two crashes, slowly, and with longer times."""
    plan = setups()
    plan += [replace(setup, crashes=2, faults=0, moves=1, unread=0) for setup in setups()]
    plan += [replace(setup, crashes=2, moves=1, unread=0) for setup in CONTRACTS.values() if setup.rules.dedupes <= 0]
    plan += [replace(setup, faults=0, unread=1) for setup in setups() if setup.hosts > 1]
    plan += [replace(setup, slow=True, faults=0, moves=1, unread=0) for setup in setups()]
    plan += [
        replace(find(name), slow=True, gatherers=2, moves=1, unread=0) for name in ("neither", "lookup", "enforces")
    ]
    for setup in _contracts(timeout=2, lag=2, window=6).values():
        one = replace(setup, name=f"{setup.name} (long)", faults=0, moves=1, unread=0)
        plan += [one, replace(one, **TWO_HOSTS)]
    return plan


def roomy() -> list[Setup]:
    """Every contract with much going wrong, for random walks."""
    return [replace(setup, crashes=3, faults=3, moves=4, unread=3) for setup in setups()]
