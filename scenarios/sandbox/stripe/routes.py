"""The table of endpoints, and what lists have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.sandbox.stripe.errors import invalid
from scenarios.sandbox.stripe.params import Params
from scenarios.sandbox.stripe.world import Call, Obj, World

Handler = Callable[[World, Call], Obj]

MAX_LIMIT = 100
DEFAULT_LIMIT = 10
LIST_PARAMS = ("limit", "starting_after", "ending_before", "created")


@dataclass(frozen=True)
class Endpoint:
    method: str
    pattern: re.Pattern[str]
    known: frozenset[str]
    handler: Handler


ENDPOINTS: list[Endpoint] = []
LEDGERS: list[Callable[[World], dict[str, Any]]] = []
"""What each part of the service adds to the ledger."""


def endpoint(method: str, path: str, *known: str) -> Callable[[Handler], Handler]:
    """Register a handler for ``path`` (``{name}`` matches one segment) that knows these parameters."""
    pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))

    def register(handler: Handler) -> Handler:
        ENDPOINTS.append(Endpoint(method, pattern, frozenset(known) | {"expand"}, handler))
        return handler

    return register


def ledger(part: Callable[[World], dict[str, Any]]) -> Callable[[World], dict[str, Any]]:
    """Register a part of the ledger."""
    LEDGERS.append(part)
    return part


def find_endpoint(method: str, path: str) -> tuple[Endpoint, dict[str, str]] | None:
    for item in ENDPOINTS:
        match = item.pattern.fullmatch(path)
        if match is not None and item.method == method:
            return item, match.groupdict()
    return None


def listing(world: World, call: Call, objects: Iterable[Obj], equal: Sequence[str] = ()) -> Obj:
    """One page of ``objects`` (given oldest first), newest first, filtered by the parameters named in ``equal``.

    Pages have 1 to 100 objects, 10 unless asked otherwise; ``starting_after`` and ``ending_before`` name an object of
    the list (API reference, "Pagination").
    """
    params = call.params
    chosen = [obj for obj in objects if _created_fits(params, obj)]
    for name in equal:
        wanted = params.text(name)
        if wanted is not None:
            chosen = [obj for obj in chosen if obj.get(name) == wanted]
    chosen.reverse()
    limit = params.integer("limit", 1) or DEFAULT_LIMIT
    if limit > MAX_LIMIT:
        raise invalid(f"This value must be less than or equal to {MAX_LIMIT} (it currently is '{limit}').", "limit")
    after, before = params.text("starting_after"), params.text("ending_before")
    if after and before:
        raise invalid("You can only specify one of these parameters: starting_after, ending_before.")
    if before:
        end = _place(chosen, before, "ending_before")
        start = max(0, end - limit)
        more = start > 0
    else:
        start = _place(chosen, after, "starting_after") + 1 if after else 0
        end = start + limit
        more = end < len(chosen)
    return {
        "object": "list",
        "data": [world.render(obj) for obj in chosen[start:end]],
        "has_more": more,
        "url": call.path,
    }


def _place(objects: Sequence[Obj], name: str, param: str) -> int:
    for index, obj in enumerate(objects):
        if obj["id"] == name:
            return index
    raise invalid(f"No such object: '{name}'", param, "resource_missing")


def _created_fits(params: Params, obj: Obj) -> bool:
    given = params.values.get("created")
    if not given:
        return True
    created = obj["created"]
    if isinstance(given, str):
        return bool(created == params.integer("created"))
    bounds = params.child("created")
    bounds.check_known(frozenset({"gt", "gte", "lt", "lte"}))
    gt, gte, lt, lte = (bounds.integer(name) for name in ("gt", "gte", "lt", "lte"))
    return not (
        (gt is not None and created <= gt)
        or (gte is not None and created < gte)
        or (lt is not None and created >= lt)
        or (lte is not None and created > lte)
    )
