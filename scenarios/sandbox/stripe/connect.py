"""Connect: accounts, capabilities, rejection, transfers and their reversals.

Documented: a destination needs an active ``transfers`` capability; a transfer needs available balance
(``balance_insufficient``) unless it names a ``source_transaction``, whose amount then is its limit;
``POST /v1/accounts/{id}/reject`` turns the capabilities off. Seen: a platform that has not signed up for Connect gets
400 on ``POST /v1/accounts``. Assumption: a requested capability of a test account is active at once, without
onboarding.
"""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.stripe.errors import StripeError, invalid, refused
from scenarios.sandbox.stripe.params import Params, money_words
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, ledger, listing
from scenarios.sandbox.stripe.world import Call, Obj, World

SIGN_UP = (
    "You can only create new accounts if you've signed up for Connect, which you can do at "
    "https://dashboard.stripe.com/connect."
)
NO_REQUIREMENTS: dict[str, Any] = {
    "alternatives": [],
    "current_deadline": None,
    "currently_due": [],
    "disabled_reason": None,
    "errors": [],
    "eventually_due": [],
    "past_due": [],
    "pending_verification": [],
}
ACCOUNT_PARAMS = ("business_profile", "business_type", "capabilities", "email", "metadata", "tos_acceptance")


@endpoint("POST", "/v1/accounts", *ACCOUNT_PARAMS, "controller", "country", "type")
def create_account(world: World, call: Call) -> Obj:
    params = call.params
    metadata = params.metadata()
    kind = params.choice("type", ("custom", "express", "standard"))
    if not world.connect:
        raise refused(SIGN_UP)
    account = world.add(
        "acct",
        "account",
        {
            "business_profile": params.child("business_profile").values or {},
            "business_type": params.text("business_type"),
            "capabilities": {},
            "charges_enabled": True,
            "controller": {"is_controller": True, "type": "application", **params.child("controller").values},
            "country": params.text("country") or "US",
            "default_currency": "usd",
            "details_submitted": True,
            "email": params.text("email"),
            "external_accounts": {"object": "list", "data": [], "has_more": False, "url": ""},
            "future_requirements": NO_REQUIREMENTS,
            "metadata": metadata,
            "payouts_enabled": True,
            "requirements": NO_REQUIREMENTS,
            "settings": {},
            "tos_acceptance": {"date": world.now(), "ip": None, "user_agent": None},
            "type": kind or "none",
            "_capabilities": {},
            "_rejected": None,
        },
    )
    del account["livemode"]
    _request(world, account, params)
    world.emit("account.updated", account)
    return account


def _request(world: World, account: Obj, params: Params) -> None:
    """Turn the capabilities on or off that a create or update names."""
    wanted = params.child("capabilities")
    for name in wanted.values:
        requested = wanted.child(name).boolean("requested")
        status = "active" if requested and not account["_rejected"] else "inactive"
        set_capability(world, account, name, status if requested else "unrequested")


def set_capability(world: World, account: Obj, name: str, status: str) -> None:
    """Set a capability's status: active, inactive, pending or unrequested."""
    capability = account["_capabilities"].setdefault(
        name,
        {
            "id": name,
            "object": "capability",
            "account": account["id"],
            "future_requirements": NO_REQUIREMENTS,
            "requested": True,
            "requested_at": world.now(),
            "requirements": NO_REQUIREMENTS,
            "status": "unrequested",
        },
    )
    previous = {"status": capability["status"]}
    capability.update(status=status, requested=status != "unrequested")
    shown = {
        n: "inactive" if c["status"] == "unrequested" else c["status"] for n, c in account["_capabilities"].items()
    }
    account["capabilities"] = shown
    if previous["status"] != status:
        world.emit("capability.updated", capability, previous)


@endpoint("POST", "/v1/accounts/{id}", *ACCOUNT_PARAMS)
def update_account(world: World, call: Call) -> Obj:
    account = _account(world, call)
    changes: dict[str, Any] = {"metadata": call.params.metadata(account["metadata"])}
    if call.params.has("email"):
        changes["email"] = call.params.text("email")
    _request(world, account, call.params)
    world.change(account, "account.updated", **changes)
    return account


@endpoint("POST", "/v1/accounts/{id}/reject", "reason")
def reject_account(world: World, call: Call) -> Obj:
    reason = call.params.choice("reason", ("fraud", "terms_of_service", "other"))
    if reason is None:
        raise invalid("Missing required param: reason.", "reason", "parameter_missing")
    account = _account(world, call)
    account["_rejected"] = reason
    for name in account["_capabilities"]:
        set_capability(world, account, name, "inactive")
    requirements = {**NO_REQUIREMENTS, "disabled_reason": f"rejected.{reason}"}
    world.change(account, "account.updated", charges_enabled=False, payouts_enabled=False, requirements=requirements)
    return account


def _account(world: World, call: Call) -> Obj:
    """The account that the URL names; an unknown one is a question of access (API reference, 403)."""
    account = world.find("account", call.args["id"])
    if account is None:
        raise StripeError(
            403,
            f"The provided key does not have access to account '{call.args['id']}' (or that account does not exist). "
            "Application access may have been revoked.",
            code="account_invalid",
        )
    return account


@endpoint("GET", "/v1/accounts/{id}")
def retrieve_account(world: World, call: Call) -> Obj:
    return _account(world, call)


@endpoint("GET", "/v1/accounts", *LIST_PARAMS)
def list_accounts(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("account"))


@endpoint("GET", "/v1/accounts/{id}/capabilities")
def list_capabilities(world: World, call: Call) -> Obj:
    account = _account(world, call)
    data = [world.render(capability) for capability in account["_capabilities"].values()]
    return {"object": "list", "data": data, "has_more": False, "url": call.path}


@endpoint("GET", "/v1/accounts/{id}/capabilities/{capability}")
def retrieve_capability(world: World, call: Call) -> Obj:
    account = _account(world, call)
    name = call.args["capability"]
    found = account["_capabilities"].get(name)
    if found is None:
        raise StripeError(404, f"No such capability: '{name}'", code="resource_missing", param="capability")
    assert isinstance(found, dict)
    return found


# Transfers


@endpoint(
    "POST",
    "/v1/transfers",
    "amount",
    "currency",
    "destination",
    "description",
    "metadata",
    "source_transaction",
    "transfer_group",
)
def create_transfer(world: World, call: Call) -> Obj:
    params = call.params
    amount, currency, metadata = params.need_integer("amount", 1), params.currency(), params.metadata()
    destination = params.need_text("destination")
    account = world.find("account", destination)
    if account is None:
        raise refused(f"No such destination: '{destination}'", code="resource_missing", param="destination")
    if account["capabilities"].get("transfers") != "active":
        raise refused(
            "Your destination account needs to have at least one of the following capabilities enabled: transfers, "
            "crypto_transfers, legacy_payments",
            code="insufficient_capabilities_for_transfer",
        )
    source = _source(world, params, amount, currency)
    group = params.text("transfer_group") or (source["transfer_group"] if source else None)
    transfer = world.add(
        "tr",
        "transfer",
        {
            "amount": amount,
            "amount_reversed": 0,
            "balance_transaction": None,
            "currency": currency,
            "description": params.text("description"),
            "destination": destination,
            "destination_payment": world.new_id("py"),
            "metadata": metadata,
            "reversed": False,
            "source_transaction": source["id"] if source else None,
            "source_type": "card",
            "transfer_group": group,
        },
    )
    transfer["reversals"] = _reversals(world, transfer)
    moved = world.move("transfer", -amount, currency, transfer["id"])
    transfer["balance_transaction"] = moved["id"]
    world.emit("transfer.created", transfer)
    return transfer


def _source(world: World, params: Params, amount: int, currency: str) -> Obj | None:
    """The charge that pays for a transfer, if one is named. Raises the refusal where the money is not there."""
    name = params.text("source_transaction")
    if name is None:
        if world.balance()["available"].get(currency, 0) < amount:
            raise refused(
                "You have insufficient available funds in your Stripe account. Try adding funds directly to your "
                "available balance by creating Charges using the 4000000000000077 test card. See: "
                "https://stripe.com/docs/testing#available-balance",
                code="balance_insufficient",
            )
        return None
    charge = world.get("charge", name, "source_transaction")
    if charge["currency"] != currency:
        raise refused(
            "The currency of source_transaction's balance transaction must be the transfer's.", param="currency"
        )
    sent = sum(t["amount"] for t in world.all("transfer") if t["source_transaction"] == name)
    if sent + amount > charge["amount_captured"]:
        raise refused(
            "Transfers using this transaction as a source must not exceed the source amount of "
            f"{money_words(charge['amount_captured'], currency)}. (There is already a total of "
            f"{money_words(sent, currency)} transferred using this source)"
        )
    return charge


@endpoint("POST", "/v1/transfers/{id}", "metadata", "description")
def update_transfer(world: World, call: Call) -> Obj:
    transfer = world.at_path("transfer", call, "transfer")
    changes: dict[str, Any] = {"metadata": call.params.metadata(transfer["metadata"])}
    if call.params.has("description"):
        changes["description"] = call.params.text("description")
    world.change(transfer, "transfer.updated", **changes)
    return transfer


@endpoint("GET", "/v1/transfers/{id}")
def retrieve_transfer(world: World, call: Call) -> Obj:
    return world.at_path("transfer", call, "transfer")


@endpoint("GET", "/v1/transfers", *LIST_PARAMS, "destination", "transfer_group")
def list_transfers(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("transfer"), ["destination", "transfer_group"])


@endpoint("POST", "/v1/transfers/{id}/reversals", "amount", "description", "metadata")
def create_reversal(world: World, call: Call) -> Obj:
    params = call.params
    amount, metadata = params.integer("amount", 1), params.metadata()
    transfer = world.at_path("transfer", call, "transfer")
    left = transfer["amount"] - transfer["amount_reversed"]
    if left == 0:
        raise refused(f"Transfer {transfer['id']} is already fully reversed.")
    if amount is not None and amount > left:
        currency = transfer["currency"]
        raise refused(
            f"The requested reversal amount ({money_words(amount, currency)}) is more than what is left of the "
            f"transfer ({money_words(left, currency)}).",
            param="amount",
        )
    amount = left if amount is None else amount
    reversal = world.add(
        "trr",
        "transfer_reversal",
        {
            "amount": amount,
            "balance_transaction": None,
            "currency": transfer["currency"],
            "destination_payment_refund": None,
            "metadata": metadata,
            "source_refund": None,
            "transfer": transfer["id"],
        },
    )
    del reversal["livemode"]
    moved = world.move("transfer_refund", amount, transfer["currency"], reversal["id"])
    reversal["balance_transaction"] = moved["id"]
    total = transfer["amount_reversed"] + amount
    transfer["reversals"] = _reversals(world, transfer)
    world.change(transfer, "transfer.reversed", amount_reversed=total, reversed=total == transfer["amount"])
    return reversal


def _reversals(world: World, transfer: Obj) -> Obj:
    found = [r for r in reversed(world.all("transfer_reversal")) if r["transfer"] == transfer["id"]]
    url = f"/v1/transfers/{transfer['id']}/reversals"
    return {"object": "list", "data": found[:10], "has_more": len(found) > 10, "total_count": len(found), "url": url}


@endpoint("GET", "/v1/transfers/{id}/reversals", *LIST_PARAMS)
def list_reversals(world: World, call: Call) -> Obj:
    transfer = world.at_path("transfer", call, "transfer")
    return listing(world, call, [r for r in world.all("transfer_reversal") if r["transfer"] == transfer["id"]])


@ledger
def connect_ledger(world: World) -> dict[str, Any]:
    """Transfers to connected accounts, and what each account can do."""
    return {
        "connect": "on" if world.connect else "off",
        "accounts": [
            {"id": account["id"], "capabilities": account["capabilities"]} for account in world.all("account")
        ],
        "transfers": [
            {
                "id": transfer["id"],
                "amount": transfer["amount"],
                "amount_reversed": transfer["amount_reversed"],
                "currency": transfer["currency"],
                "destination": transfer["destination"],
                "source_transaction": transfer["source_transaction"],
                "transfer_group": transfer["transfer_group"],
                "created_at": transfer["_at"],
                "metadata": transfer["metadata"],
                "idempotency_key": transfer["_key"],
            }
            for transfer in world.all("transfer")
        ],
    }
