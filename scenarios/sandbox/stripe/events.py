"""Events and the account's balance: what is read and never written.

Documented: events go back 30 days, newest first, and hold a snapshot of the object as it was; ``request`` names the
API request and idempotency key that caused one, null where nobody asked.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from scenarios.sandbox.stripe.errors import invalid
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, listing
from scenarios.sandbox.stripe.world import DAY_S, Call, Obj, World

EVENTS_KEPT_S = 30 * DAY_S


@endpoint("GET", "/v1/events", *LIST_PARAMS, "type", "types", "delivery_success")
def list_events(world: World, call: Call) -> Obj:
    kind, kinds = call.params.text("type"), call.params.strings("types")
    if kind and kinds:
        raise invalid("You may pass either type or types, not both.")
    wanted = [kind] if kind else kinds
    events = [
        event
        for event in world.all("event")
        if event["_at"] > world.clock.now() - EVENTS_KEPT_S
        and (not wanted or any(fnmatchcase(event["type"], pattern) for pattern in wanted))
    ]
    return listing(world, call, events)


@endpoint("GET", "/v1/events/{id}")
def retrieve_event(world: World, call: Call) -> Obj:
    return world.at_path("event", call)


@endpoint("GET", "/v1/balance_transactions", *LIST_PARAMS, "currency", "source", "type")
def list_balance_transactions(world: World, call: Call) -> Obj:
    world.balance()
    return listing(world, call, world.all("balance_transaction"), ["currency", "source", "type"])


@endpoint("GET", "/v1/balance_transactions/{id}")
def retrieve_balance_transaction(world: World, call: Call) -> Obj:
    world.balance()
    return world.at_path("balance_transaction", call)


@endpoint("GET", "/v1/balance")
def retrieve_balance(world: World, call: Call) -> Obj:
    totals = world.balance()
    currencies = sorted({*totals["available"], *totals["pending"]}) or ["usd"]

    def bucket(name: str) -> list[Obj]:
        return [
            {"amount": totals[name].get(c, 0), "currency": c, "source_types": {"card": totals[name].get(c, 0)}}
            for c in currencies
        ]

    return {
        "object": "balance",
        "available": bucket("available"),
        "livemode": False,
        "pending": bucket("pending"),
        "refund_and_dispute_prefunding": {"available": [], "pending": []},
    }
