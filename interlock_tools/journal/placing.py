"""Gives the records of a SQLite journal their places in the log, in the transaction of their entries."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .records import Seal, hash_in, last_leaf
from .schema import QUERIES

if TYPE_CHECKING:
    from ..receipts.merkle import Tree

COLUMNS = 9
"""How many columns an entry has without its record."""


def load_tree(cursor: sqlite3.Cursor, known: Tree | None) -> Tree:
    """Return the log's tree as it stands; ``known`` is one that it extends, and often the same."""
    size = cursor.execute(QUERIES["log_size"]).fetchall()[0][0]
    if known is not None and known.size == size:
        return known
    from ..receipts.merkle import Tree

    def node(level: int, position: int) -> bytes:
        rows = cursor.execute(QUERIES["log_nodes"], {"leaf": last_leaf(level, position)}).fetchall()
        return hash_in(rows, level)

    return Tree.load(size, node)


def with_records(plain: Sequence[Any], seals: Sequence[Seal], tree: Tree) -> tuple[list[Any], Tree]:
    """Return the columns of one effect's entries with those of their records, and the tree with them.

    Args:
        plain: the columns of the entries, one row after the other.
        seals: a record for each, or none.
        tree: the log's tree as it stands.
    """
    values: list[Any] = []
    for number, start in enumerate(range(0, len(plain), COLUMNS)):
        values += plain[start : start + COLUMNS]
        if not seals:
            values += (None, None, None, None)
            continue
        seal, leaf = seals[number], tree.size
        tree, nodes = tree.append(seal.hash)
        completed = seal.hash if len(nodes) == 1 else b"".join([node.hash for node in nodes])
        values += (leaf, completed, seal.signature, seal.service)
    return values, tree
