"""A small MCP server over a ledger in a file, of which it knows nothing of gates: ``mcp_server.py FOLDER``."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

FOLDER = Path(sys.argv[1])
LEDGER = FOLDER / "ledger"
server = MCPServer("shop")


def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []


async def act(**made: Any) -> dict[str, Any]:
    """Write it down; then, while a test says so, tell it that this was done, and do not answer."""
    made["id"] = f"re_{len(entries()) + 1}"
    with LEDGER.open("a") as file:
        file.write(json.dumps(made) + "\n")
    for _ in range(3000):
        if not (FOLDER / "hold").exists():
            break
        await asyncio.sleep(0.01)
    return made


@server.tool()
async def create_refund(payment: str, amount: int) -> dict[str, Any]:
    """Refund a payment."""
    return await act(payment=payment, amount=amount)


@server.tool()
async def create_credit(payment: str, amount: int, idempotency_key: str = "") -> dict[str, Any]:
    """Give a credit for a payment that is not disputed."""
    return await act(credit=payment, amount=amount, key=idempotency_key)


@server.tool()
async def delete_account(account: str) -> dict[str, Any]:
    """Delete an account, or fail."""
    if account == "locked":
        raise RuntimeError("the account is locked, or is it")
    return await act(account=account)


@server.tool()
def cancel_order(order: str) -> str:
    """Cancel an order that is not shipped."""
    raise ValueError("it is shipped")


@server.tool()
def find_refund(payment: str) -> dict[str, Any] | None:
    """Find the refund of a payment."""
    return next((made for made in entries() if made.get("payment") == payment), None)


@server.tool()
def payment_status(payment: str) -> dict[str, Any]:
    """Look at a payment."""
    disputed = FOLDER / "disputed"
    return {"disputed": payment in disputed.read_text().split() if disputed.exists() else False, "seen_by": os.getpid()}


@server.tool()
async def count(upto: int, context: Context) -> int:
    """Count, and tell how far it is."""
    for number in range(upto):
        await context.report_progress(number + 1, upto)
    return upto


@server.resource("shop://hours")
def hours() -> str:
    return "9 to 5"


server.run("stdio")
