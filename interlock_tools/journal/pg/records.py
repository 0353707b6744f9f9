"""The signed log in a PostgreSQL journal.

Records are committed with their entries. Their places in the log are given
later, by whoever is about to sign a checkpoint, so that appends of different
effects need not wait for each other: until there is a checkpoint, a place binds
nobody. An effect's records keep their order, because none is committed before
the one that it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import JournalError
from ..records import HASH_BYTES, Seal, Secret, Stored, hash_in, last_leaf
from .pool import Connection
from .store import Store

if TYPE_CHECKING:
    from ...receipts.merkle import Tree

AT_ONCE = 5000
"""How many records are given their places in one transaction."""
_MOST_ROUNDS = 10_000


class PostgresRecords:
    """See ``records.Records`` for what each method promises."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open = open_store

    def _read(self, query: str, values: Any = ()) -> list[Any]:
        return self._open().read(query, values)

    def place(self) -> int:
        for _ in range(_MOST_ROUNDS):
            placed, size = self._open().transact(_place)
            if placed < AT_ONCE:
                return int(size)
        raise JournalError("records come faster than they can be given their places in the log")

    def node(self, level: int, position: int) -> bytes:
        return hash_in(self._read("log_nodes", {"leaf": last_leaf(level, position)}), level)

    def of(self, effect_id: str) -> list[Stored]:
        return [
            Stored(seq, leaf, Seal(bytes(found), bytes(signature), service))
            for seq, leaf, found, signature, service in self._read("records", (effect_id,))
        ]

    def secret(self, effect_id: str) -> Secret | None:
        rows = self._read("secret", (effect_id,))
        return Secret(bytes(rows[0][0]), rows[0][1]) if rows else None

    def key_changes(self) -> list[Stored]:
        return [
            Stored(0, leaf, Seal(bytes(nodes)[:HASH_BYTES], bytes(signature), None, statement))
            for leaf, nodes, signature, statement in self._read("key_changes")
        ]

    def add_key_change(self, seal: Seal) -> None:
        def work(connection: Connection, sql: dict[str, bytes]) -> None:
            while _place(connection, sql)[0] == AT_ONCE:
                pass  # what was signed before it stands before it
            tree = _tree(connection, sql)
            _, nodes = tree.append(seal.hash)
            completed = b"".join([node.hash for node in nodes])
            connection.execute(sql["add_key_change"], (tree.size, completed, seal.signature, seal.statement))

        self._open().transact(work)

    def checkpoint_after(self, leaf: int) -> str | None:
        rows = self._read("checkpoint_witnessed", (leaf,))
        return rows[0][0] if rows else self.first_checkpoint(leaf)

    def first_checkpoint(self, leaf: int) -> str | None:
        rows = self._read("checkpoint_after", (leaf,))
        return rows[0][0] if rows else None

    def keep_checkpoint(self) -> None:
        self._open().write(("keep_checkpoint", ()))

    def put_checkpoint(self, size: int, note: str, witnessed: bool) -> None:
        self._open().write(("put_checkpoint", (size, note, int(witnessed))), ("forget_checkpoints", (size,)))

    def erase(self, effect_id: str, bodies: dict[int, str]) -> None:
        self._open().write(("erase", (effect_id, list(bodies), list(bodies.values()))))

    def fact(self, name: str) -> str | None:
        rows = self._read("log_fact", (name,))
        return rows[0][0] if rows else None

    def put_facts(self, facts: dict[str, str | None], *, new_log: bool = False) -> None:
        statements: list[tuple[str, Sequence[Any]]] = [("drop_checkpoints", ())] if new_log else []
        for name, value in facts.items():
            statements.append(("drop_log_fact", (name,)) if value is None else ("put_log_fact", (name, value)))
        self._open().write(*statements)


def _tree(connection: Connection, sql: dict[str, bytes]) -> Tree:
    from ...receipts.merkle import Tree

    def node(level: int, position: int) -> bytes:
        rows = connection.execute(sql["log_nodes"], {"leaf": last_leaf(level, position)}).fetchall()
        return hash_in(rows, level)

    return Tree.load(connection.execute(sql["log_size"]).fetchall()[0][0], node)


def _place(connection: Connection, sql: dict[str, bytes]) -> tuple[int, int]:
    """Give some records their places. Returns how many, and how many records have one now."""
    connection.execute(sql["lock_log"])
    rows = connection.execute(sql["to_place"], (AT_ONCE,)).fetchall()
    if not rows:
        return 0, connection.execute(sql["log_size"]).fetchall()[0][0]
    tree = _tree(connection, sql)
    leaves, completed = [], []
    for _, _, found in rows:
        leaves.append(tree.size)
        tree, nodes = tree.append(bytes(found))
        completed.append(b"".join([node.hash for node in nodes]).hex())
    connection.execute(sql["place"], ([row[0] for row in rows], [row[1] for row in rows], leaves, completed))
    return len(rows), tree.size
