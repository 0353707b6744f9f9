"""The signed log in a SQLite journal."""

from __future__ import annotations

from typing import Any

from .database import Database
from .records import HASH_BYTES, Seal, Secret, Stored, hash_in, last_leaf
from .schema import QUERIES


class SqliteRecords:
    """See ``records.Records`` for what each method promises. Every record has its place from the start."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _read(self, query: str, *values: Any) -> list[Any]:
        return self._database.read(QUERIES[query], values)

    def place(self) -> int:
        size: int = self._read("log_size")[0][0]
        return size

    def node(self, level: int, position: int) -> bytes:
        return hash_in(self._database.read(QUERIES["log_nodes"], {"leaf": last_leaf(level, position)}), level)

    def of(self, effect_id: str) -> list[Stored]:
        return [
            Stored(seq, leaf, Seal(nodes[:HASH_BYTES], signature, service))
            for seq, leaf, nodes, signature, service in self._read("records", effect_id)
        ]

    def secret(self, effect_id: str) -> Secret | None:
        rows = self._read("secret", effect_id)
        return Secret(*rows[0]) if rows else None

    def key_changes(self) -> list[Stored]:
        return [
            Stored(0, leaf, Seal(nodes[:HASH_BYTES], signature, None, statement))
            for leaf, nodes, signature, statement in self._read("key_changes")
        ]

    def add_key_change(self, seal: Seal) -> None:
        self._database.write_log((), (seal,))

    def checkpoint_after(self, leaf: int) -> str | None:
        rows = self._read("checkpoint_witnessed", leaf)
        return rows[0][0] if rows else self.first_checkpoint(leaf)

    def first_checkpoint(self, leaf: int) -> str | None:
        rows = self._read("checkpoint_after", leaf)
        return rows[0][0] if rows else None

    def keep_checkpoint(self) -> None:
        self._database.write_log((("keep_checkpoint", ()),))

    def put_checkpoint(self, size: int, note: str, witnessed: bool) -> None:
        self._database.write_log((("put_checkpoint", (size, note, int(witnessed))), ("forget_checkpoints", (size,))))

    def erase(self, effect_id: str, bodies: dict[int, str]) -> None:
        statements: list[tuple[str, Any]] = [("erase_begin", ())]
        for seq, body in bodies.items():
            statements.append(("erase_body", {"body": body, "seq": seq, "effect": effect_id}))
        self._database.write_log([*statements, ("erase_secret", (effect_id,)), ("erase_end", ())])

    def fact(self, name: str) -> str | None:
        rows = self._read("log_fact", name)
        return rows[0][0] if rows else None

    def put_facts(self, facts: dict[str, str | None], *, new_log: bool = False) -> None:
        statements: list[tuple[str, tuple[Any, ...]]] = [("drop_checkpoints", ())] if new_log else []
        for name, value in facts.items():
            statements.append(("drop_log_fact", (name,)) if value is None else ("put_log_fact", (name, value)))
        self._database.write_log(statements)
