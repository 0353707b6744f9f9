"""Test clocks: customers made on one live by its time and not by the sandbox's.

Documented: ``advance`` answers with status ``advancing``; what falls due on the way happens in order; then the status
is ``ready``. A clock cannot be advanced while it is advancing, nor backwards. Documented and not reproduced: at most
two billing intervals an advance.
"""

from __future__ import annotations

from scenarios.sandbox.clock import Clock
from scenarios.sandbox.stripe.errors import refused
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, listing
from scenarios.sandbox.stripe.world import DAY_S, Call, Obj, World

KIND = "test_helpers.test_clock"
CLOCKS = "/v1/test_helpers/test_clocks"


@endpoint("POST", CLOCKS, "frozen_time", "name")
def create_clock(world: World, call: Call) -> Obj:
    frozen = call.params.need_integer("frozen_time", 0)
    own = Clock()
    own.freeze(True)
    own.set(frozen)
    clock = world.add(
        "clock",
        KIND,
        {
            "deletes_after": world.now() + 30 * DAY_S,
            "frozen_time": frozen,
            "name": call.params.text("name"),
            "status": "ready",
            "status_details": {},
            "_clock": own,
        },
    )
    world.emit("test_helpers.test_clock.created", clock)
    return clock


@endpoint("POST", CLOCKS + "/{id}/advance", "frozen_time")
def advance_clock(world: World, call: Call) -> Obj:
    target = call.params.need_integer("frozen_time", 0)
    clock = world.at_path(KIND, call, "test_clock")
    if clock["status"] != "ready":
        raise refused("A test clock that is advancing cannot be advanced.", code="test_clock_not_ready")
    if target <= clock["frozen_time"]:
        raise refused("A test clock can be advanced only to a later time.", param="frozen_time")
    details = {"advancing": {"target_frozen_time": target}}
    world.change(clock, "test_helpers.test_clock.advancing", status="advancing", status_details=details)
    world.clock.call_later(world.timing.clock_advance_s, lambda: _arrive(world, clock, target))
    return clock


def _arrive(world: World, clock: Obj, target: int) -> None:
    """Everything that falls due until ``target`` happens, then the clock is ready."""
    if clock["id"] not in world.table(KIND):
        return
    clock["_clock"].set(target)
    world.change(clock, "test_helpers.test_clock.ready", status="ready", frozen_time=target, status_details={})


@endpoint("GET", CLOCKS + "/{id}")
def retrieve_clock(world: World, call: Call) -> Obj:
    return world.at_path(KIND, call, "test_clock")


@endpoint("GET", CLOCKS, *LIST_PARAMS)
def list_clocks(world: World, call: Call) -> Obj:
    return listing(world, call, world.all(KIND))


@endpoint("DELETE", CLOCKS + "/{id}")
def delete_clock(world: World, call: Call) -> Obj:
    """Deleting a clock deletes its customers; they are left out of every list and their subscriptions never renew."""
    clock = world.at_path(KIND, call, "test_clock")
    world.emit("test_helpers.test_clock.deleted", clock)
    for customer in world.all("customer"):
        if customer["test_clock"] == clock["id"]:
            world.remove(customer)
    world.remove(clock)
    return {"id": clock["id"], "object": KIND, "deleted": True}
