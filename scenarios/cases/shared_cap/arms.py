"""The tool ``create_refund`` of two bots that share a case's cap, made in six ways."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Generator
from typing import Any

from langchain_core.tools import BaseTool

from interlock_integrations.stripe import StripeToolkit
from interlock_tools import Budget
from scenarios.suite import stripe_hand as hand
from scenarios.suite.gated import approvals, gate_of, options, recovered
from scenarios.suite.hand import Files, hand_tool
from scenarios.suite.model import Arm, Work
from scenarios.suite.peers import DBOS_LOADS, LANGGRAPH_LOADS, Act, checkpointed_tool, dbos_tool

CAP = 30_00
CAP_CASE = "case-4471"
Said = tuple[str, dict[str, Any]]


class Bot:
    """What the hand-written arms share: one bot's refund, looked for and made by the official SDK."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.files = Files(work)
        self.v1 = hand.client().v1

    def total(self, payment: str) -> int:
        """What has been refunded so far, in cents."""
        refunds = hand.refunds_of(self.v1, payment)
        return sum(refund["amount"] for refund in refunds if refund["status"] not in ("failed", "canceled"))

    def send(self, payment: str, amount: int) -> Said:
        """Send under the bot's key."""
        params: Any = {"payment_intent": payment, "amount": amount, "metadata": {hand.CASE: self.work.case}}
        key: Any = {"idempotency_key": f"refund:{self.work.case}"}
        return hand.blindly(self.files, "Refund", lambda: self.v1.refunds.create(params, key))

    def read_then_send(self, payment: str, amount: int) -> Said:
        """Look for the own refund, then whether it fits under the cap, then send."""
        found = hand.own(hand.refunds_of(self.v1, payment), self.work.case)
        if found is not None:
            return self.files.finish("landed", hand.told("Refund", found), id=found["id"])
        if self.total(payment) + amount > CAP:
            return self.files.finish("not_landed", "Not refunded: over the cap.")
        return self.send(payment, amount)

    def tool(self, act: Callable[[str, int], Said]) -> BaseTool:
        def create_refund(payment_intent: str, amount: int) -> Said:
            """Refund a payment in part."""
            decided = self.files.decision(lambda: {"payment_intent": payment_intent, "amount": amount})
            return act(decided["payment_intent"], decided["amount"])

        return hand_tool("create_refund", create_refund)


def no_check(work: Work) -> BaseTool:
    """Each bot saves its decision and sends it with a key of its own; nobody looks at the cap."""
    bot = Bot(work)
    return bot.tool(bot.send)


def hand_check(work: Work) -> BaseTool:
    """Each bot reads what has been refunded, checks that its refund fits under the cap, and sends."""
    bot = Bot(work)
    return bot.tool(bot.read_then_send)


def hand_lock(work: Work) -> BaseTool:
    """The same inside ``flock``: on one host the kernel lets one bot at a time read and send."""
    bot = Bot(work)

    @contextlib.contextmanager
    def locked() -> Generator[None, None, None]:
        with (work.path / "cap.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def act(payment: str, amount: int) -> Said:
        with locked():
            return bot.read_then_send(payment, amount)

    return bot.tool(act)


def hand_sql(work: Work) -> BaseTool:
    """Take the amount from the cap by one conditional UPDATE, then send; the database decides between hosts.

    It is the usual advice for a shared limit. The update and the send are two
    things, and a process can die between them.
    """
    import psycopg

    bot = Bot(work)

    def act(payment: str, amount: int) -> Said:
        with psycopg.connect(os.environ["SCENARIO_DATABASE"], autocommit=True) as db:
            taken = db.execute(
                "UPDATE case_budget SET used = used + %s WHERE name = %s AND used + %s <= cap",
                (amount, CAP_CASE, amount),
            )
            if taken.rowcount != 1:
                return bot.files.finish("not_landed", "Not refunded: over the cap.")
        return bot.send(payment, amount)

    return bot.tool(act)


def interlock_core(work: Work) -> BaseTool:
    """A configuration without a budget: there must be room under the cap, as a premise.

    Nothing is shared, so it holds what it can see, as hand_check does. In the reference study it waited 40 s before
    it looked; here it looks at once.
    """

    def room(payment_intent: str, amount: int, idempotency_key: str) -> dict[str, Any]:
        refunds = hand.refunds_of(bot.v1, payment_intent)
        others = sum(
            refund["amount"]
            for refund in refunds
            if refund["metadata"].get("interlock_effect_id") != idempotency_key
            and refund["status"] not in ("failed", "canceled")
        )
        return {"fits_under_the_cap": others + amount <= CAP}

    bot = Bot(work)
    refunds = {"premises": room, "expect": {"fits_under_the_cap": True}}
    return _gated(work, refunds)


def interlock(work: Work) -> BaseTool:
    """The toolkit as shipped, with the cap as a budget."""
    return _gated(work, {"budget": lambda amount: Budget(f"case:{CAP_CASE}", amount=amount, limit=CAP)})


def _gated(work: Work, refunds: dict[str, Any]) -> BaseTool:
    gate = gate_of(work)
    declared = {"other_refunds": "allow", **refunds}  # the other bot's refund is no obstacle as such
    kit = StripeToolkit(gate, tools=["create_refund"], approvals=approvals(work), refunds=declared, **options(work))
    return recovered(gate, kit.get_tools())


def _peer(work: Work) -> tuple[Act, Act]:
    """What a peer's steps do: look whether it fits, or is there already, then send with a key."""
    bot = Bot(work)

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        refunds = hand.refunds_of(bot.v1, arguments["payment_intent"])
        fits = hand.refunded_by_others(refunds, work.case) + arguments["amount"] <= CAP
        return {
            "go": fits or hand.own(refunds, work.case) is not None,
            "claim": "not_landed",
            "words": "Not refunded: over the cap.",
        }

    def send(arguments: dict[str, Any]) -> dict[str, Any]:
        words, done = bot.send(arguments["payment_intent"], arguments["amount"])
        return {**done, "words": words}

    return check, send


def dbos(work: Work) -> BaseTool:
    """Each bot is a DBOS workflow of two steps: whether it fits under the cap, and the send with a key."""
    return dbos_tool(work, "create_refund", *_peer(work))


def langgraph(work: Work) -> BaseTool:
    """Each bot has a checkpointer (SQLite, durability sync); its tool looks whether it fits, and sends with a key."""
    return checkpointed_tool(work, "create_refund", *_peer(work))


ONE_HOST = ("after_commit", "before_send")
TWO_HOSTS = ("two_hosts/after_commit", "two_hosts/before_send")
INSTANT = ("instant/after_commit", "instant/before_send")
NOT_PEERS = {
    **dict.fromkeys(TWO_HOSTS, "it keeps its state in SQLite, on one host, and shares no budget between bots on any"),
    **dict.fromkeys(INSTANT, "a comparison of hand_check and interlock alone"),
}
"""Why peers are not played with the rest."""

ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or "", ONE_HOST),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or "", ONE_HOST + INSTANT),
    "hand_lock": Arm(hand_lock, "hand", hand_lock.__doc__ or "", ONE_HOST + TWO_HOSTS),
    "hand_sql": Arm(hand_sql, "hand", hand_sql.__doc__ or "", TWO_HOSTS),
    "interlock_core": Arm(interlock_core, "interlock", interlock_core.__doc__ or "", ONE_HOST),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or "", ONE_HOST + TWO_HOSTS + INSTANT),
    "dbos": Arm(dbos, "peer", dbos.__doc__ or "", loads=DBOS_LOADS, left_out=NOT_PEERS),
    "langgraph": Arm(
        langgraph, "peer", langgraph.__doc__ or "", checkpointed=True, loads=LANGGRAPH_LOADS, left_out=NOT_PEERS
    ),
}
