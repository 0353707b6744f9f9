"""What room finished effects take in PostgreSQL: bytes for each, with indexes, by table.

::

    python scenarios/bench_postgres_room.py --json results/bench-postgres-room.json

Makes refunds of an ordinary size through a gate, in a server of its own or the one that ``INTERLOCK_TEST_POSTGRES``
names: without a budget, with one, and signed.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)
sys.path.insert(1, str(ROOT / "integrations"))

from interlock_tools import Budget, Gate  # noqa: E402
from interlock_tools.testing.postgres import NoServer, Server  # noqa: E402

SIZES = (
    "SELECT relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
    "WHERE nspname = %s AND relkind = 'r' ORDER BY 2 DESC"
)
LOG = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
BODIES = "SELECT sum(octet_length(body))::bigint FROM {}.entries"


def measure(url: str, keys: Path | None, capped: bool, count: int) -> dict[str, Any]:
    """Make so many effects in a schema of their own, and return what they take."""
    import psycopg

    schema = f"room_{secrets.token_hex(6)}"
    url = url.rstrip("?")
    joined = f"{url}{'&' if '?' in url else '?'}interlock_schema={schema}"
    with psycopg.connect(url, autocommit=True) as raw:
        gate = Gate(joined, **({"signing": keys} if keys else {}))
        budget: dict[str, Any] = {"budget": lambda amount, **_: Budget("day", amount=amount, limit=10**12)}

        @gate.effect(
            "shop.refund",
            key=lambda case, **_: case,
            premises=lambda case, **_: {"refunded": 0, "chargebacks": 0},
            **(budget if capped else {}),
        )
        def refund(case: str, payment: str, amount: int, currency: str) -> dict[str, Any]:
            return {"id": f"re_{case:0>20}", "amount": amount, "status": "succeeded"}

        try:
            refund(case="first", payment="pi_0", amount=2000, currency="eur")
            ((log_before,),) = raw.execute(LOG).fetchall()
            for number in range(count):
                refund(case=str(number), payment=f"pi_{number:0>20}", amount=2000, currency="eur")
            if keys:
                gate.records.flush()
            ((log_after,),) = raw.execute(LOG).fetchall()
            sizes = raw.execute(SIZES, (schema,)).fetchall()
            ((bodies,),) = raw.execute(BODIES.format(schema)).fetchall()  # type: ignore[arg-type]
        finally:
            gate.close()
            raw.execute(f"DROP SCHEMA {schema} CASCADE")  # type: ignore[arg-type]
    return {
        "bytes_per_effect": round(sum(size for _, size in sizes) / count),
        "of_which": {name: round(size / count) for name, size in sizes if size / count >= 10},
        "content_of_entries_bytes": round(bodies / count),
        "write_ahead_log_bytes": round((log_after - log_before) / count),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    named = os.environ.get("INTERLOCK_TEST_POSTGRES")
    try:
        server = None if named else Server()
    except NoServer as error:
        sys.exit(str(error))
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["INTERLOCK_SESSIONS"] = f"{folder}/sessions"
            url = named or server.url()  # type: ignore[union-attr]
            found: dict[str, Any] = {"effects": arguments.count}
            for name, keys, capped in (
                ("plain", None, False),
                ("with a budget", None, True),
                ("with a budget, signed", Path(folder) / "keys", True),
            ):
                found[name] = measure(url, keys, capped, arguments.count)
                print(f"{name}: {found[name]}")
    finally:
        if server is not None:
            server.remove()
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
