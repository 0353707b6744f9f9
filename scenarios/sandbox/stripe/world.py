"""The state of the Stripe sandbox: objects, money, events; and how objects are rendered."""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from scenarios.sandbox.clock import Clock
from scenarios.sandbox.stripe.errors import invalid, no_such
from scenarios.sandbox.stripe.params import Params

API_VERSION = "2026-10-28.endive"
"""What version 16.1 of the Python SDK pins; objects have that version's shape."""

Obj = dict[str, Any]
"""A Stripe object. Names that begin with an underscore are the sandbox's own and are never rendered."""

DAY_S = 86_400


@dataclass
class Timing:
    """Delays in seconds of sandbox time. Defaults lie in what was seen against the live service in test mode."""

    inquiry_s: float = 0.4
    """From confirming pm_card_createDisputeInquiry to its inquiry (seen: 0.4)."""
    dispute_s: float = 0.6
    """From confirming pm_card_createDispute to its chargeback (seen: 0.6)."""
    escalation_s: float = 6.0
    """From submitting escalate_inquiry_evidence to the chargeback (seen: 4 to 8)."""
    refund_fail_s: float = 5.5
    """From a refund of pm_card_refundFail to its failure (seen: 4 to 7)."""
    refund_pending_s: float = 5.0
    """From a refund of pm_card_pendingRefund to its success (an assumption)."""
    caught_refund_s: float = 60.0
    """A refund created at most this long before a chargeback posts fails with it (seen: failed at 5 to 7, stayed
    succeeded at 300; where in between the limit lies is an assumption)."""
    evidence_s: float = 2.0
    """From winning_evidence or losing_evidence to the verdict (an assumption)."""
    funds_pending_s: float = 2 * DAY_S
    """From a charge to its money being available (an assumption; it depends on the account's country)."""
    finalize_s: float = 3600.0
    """From a renewal's draft invoice to its finalisation (documented: about an hour)."""
    clock_advance_s: float = 1.0
    """How long a test clock stays ``advancing`` (an assumption)."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Timing:
        """Timing with those defaults replaced that ``options`` name. Raises ValueError for what is not a number."""
        known = {item.name for item in fields(cls)}
        return cls(**{name: float(value) for name, value in options.items() if name in known})


@dataclass
class Call:
    """One API request that has been let in."""

    method: str
    path: str
    args: dict[str, str]
    params: Params
    key: str | None
    request_id: str
    expand: list[str]


class World:
    """Everything one Stripe account holds. Only the event loop's thread touches it, and no method awaits."""

    _generations = itertools.count(1)

    def __init__(self, clock: Clock, timing: Timing, connect: bool = True) -> None:
        self.clock = clock
        self.timing = timing
        self.connect = connect
        self.call: Call | None = None
        """The request that is being executed; None while scheduled things happen."""
        self._generation = next(World._generations)
        self._ids = itertools.count(1)
        self._tables: dict[str, dict[str, Obj]] = {}
        self._by_id: dict[str, Obj] = {}

    def now(self) -> int:
        return int(self.clock.now())

    def new_id(self, prefix: str) -> str:
        """An id that no other object has had, in this world or an earlier one of this process."""
        digest = hashlib.sha256(f"{self._generation}:{next(self._ids)}".encode()).hexdigest()
        return f"{prefix}_1{digest[:23]}"

    # Objects

    def add(self, prefix: str, kind: str, values: Mapping[str, Any], *, created: int | None = None) -> Obj:
        """A new object of ``kind`` with an id; ``created`` is now unless given (a test clock has its own time)."""
        obj: Obj = {
            "id": self.new_id(prefix),
            "object": kind,
            "created": self.now() if created is None else created,
            "livemode": False,
            "_at": self.clock.now(),
            "_key": self.call.key if self.call else None,
            "_history": [],
        }
        obj.update(values)
        if "status" in obj:
            obj["_history"].append([self.clock.now(), obj["status"]])
        self.table(kind)[obj["id"]] = obj
        self._by_id[obj["id"]] = obj
        return obj

    def table(self, kind: str) -> dict[str, Obj]:
        """Objects of one kind by id, in order of creation."""
        return self._tables.setdefault(kind, {})

    def all(self, kind: str) -> list[Obj]:
        return list(self.table(kind).values())

    def find(self, kind: str, name: str) -> Obj | None:
        return self.table(kind).get(name)

    def get(self, kind: str, name: str, param: str, *, in_path: bool = False) -> Obj:
        """The object, or the error that Stripe answers where there is none."""
        found = self.find(kind, name)
        if found is None:
            raise no_such(kind, name, param, in_path=in_path)
        return found

    def at_path(self, kind: str, call: Call, param: str = "id") -> Obj:
        """The object that the URL of ``call`` names."""
        return self.get(kind, call.args["id"], param, in_path=True)

    def remove(self, obj: Obj) -> None:
        self.table(obj["object"]).pop(obj["id"], None)

    def change(self, obj: Obj, *event_types: str, **changes: Any) -> None:
        """Change fields of an object and report it in events, with what the fields were before."""
        previous = {name: copy.deepcopy(obj.get(name)) for name, value in changes.items() if obj.get(name) != value}
        if "status" in previous:
            obj["_history"].append([self.clock.now(), changes["status"]])
        obj.update(changes)
        for event_type in event_types:
            self.emit(event_type, obj, previous)

    # Events

    def emit(self, event_type: str, obj: Obj, previous: Mapping[str, Any] | None = None) -> None:
        """Record an event with a snapshot of ``obj`` as it is now."""
        data: Obj = {"object": self.render(obj)}
        if previous is not None:
            data["previous_attributes"] = dict(previous)
        self.add(
            "evt",
            "event",
            {
                "api_version": API_VERSION,
                "data": data,
                "pending_webhooks": 0,
                "request": {
                    "id": self.call.request_id if self.call else None,
                    "idempotency_key": self.call.key if self.call else None,
                },
                "type": event_type,
            },
        )

    # Money

    def move(
        self,
        kind: str,
        amount: int,
        currency: str,
        source: str,
        *,
        fee: int = 0,
        after_s: float = 0.0,
        category: str = "",
    ) -> Obj:
        """A balance transaction: ``amount`` (negative is out) less ``fee``, available ``after_s`` from now."""
        details = [
            {
                "amount": fee,
                "application": None,
                "currency": currency,
                "description": "Stripe fees",
                "type": "stripe_fee",
            }
        ]
        return self.add(
            "txn",
            "balance_transaction",
            {
                "amount": amount,
                "available_on": int(self.now() + after_s),
                "balance_type": "payments",
                "currency": currency,
                "description": None,
                "exchange_rate": None,
                "fee": fee,
                "fee_details": details if fee else [],
                "net": amount - fee,
                "reporting_category": category or kind,
                "source": source,
                "status": "pending" if after_s else "available",
                "type": kind,
            },
        )

    def balance(self) -> dict[str, dict[str, int]]:
        """``available`` and ``pending`` by currency, in its smallest unit."""
        totals: dict[str, dict[str, int]] = {"available": {}, "pending": {}}
        for entry in self.all("balance_transaction"):
            if entry["available_on"] <= self.now():
                entry["status"] = "available"
            bucket = totals[entry["status"]]
            bucket[entry["currency"]] = bucket.get(entry["currency"], 0) + entry["net"]
        return totals

    # Rendering

    def render(self, obj: Obj, expand: Iterable[str] = ()) -> Obj:
        """A copy for the wire: the sandbox's own fields dropped, the named fields expanded."""
        rendered = _public(obj)
        assert isinstance(rendered, dict)
        for path in expand:
            self._expand(rendered, path.split("."), path)
        return rendered

    def _expand(self, node: Any, parts: list[str], path: str) -> None:
        if isinstance(node, list):
            for item in node:
                self._expand(item, parts, path)
            return
        if not isinstance(node, dict) or not parts:
            return
        name = parts[0]
        value = node.get(name)
        includable = INCLUDABLE.get((node.get("object"), name))
        if includable is not None and value is None:
            value = node[name] = includable(self, node)
        elif isinstance(value, str) and value in self._by_id and name != "id":
            value = node[name] = _public(self._by_id[value])
        elif name not in node or (len(parts) == 1 and value is not None and not isinstance(value, (dict, list))):
            raise invalid(f"This property cannot be expanded ({path}).", "expand")
        self._expand(value, parts[1:], path)


INCLUDABLE: dict[tuple[str | None, str], Callable[[World, Obj], Any]] = {}
"""Fields that are left out unless ``expand`` names them, by object and name."""


def _public(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _public(item) for name, item in value.items() if not str(name).startswith("_")}
    if isinstance(value, list):
        return [_public(item) for item in value]
    return copy.copy(value)
