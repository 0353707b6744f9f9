"""The Merkle tree of RFC 6962 (and RFC 9162, section 2.1), over stored nodes.

A log keeps every complete subtree's hash once: node ``(level, position)``
covers the leaves from ``position * 2**level`` up to, and without,
``(position + 1) * 2**level``. Appending leaf ``n`` completes ``(0, n)`` and as
many nodes above it as ``n`` ends in one-bits. Roots and proofs of any earlier
size are computed from those nodes.

Heads and proofs are verified from their own bytes alone; every verifier here
answers False, never raises, for hashes of a wrong length and impossible sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

HASH_SIZE = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()
"""Root of a tree without leaves."""

ReadNode = Callable[[int, int], bytes]
"""``(level, position)`` to the stored hash of that complete subtree."""


class Node(NamedTuple):
    """A complete subtree's hash, to be stored beside the entry that completed it."""

    level: int
    position: int
    hash: bytes


def leaf_hash(data: bytes) -> bytes:
    """Return SHA-256(0x00 ‖ data)."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return SHA-256(0x01 ‖ left ‖ right)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def peaks(size: int) -> list[tuple[int, int]]:
    """Return the ``(level, position)`` of the complete subtrees of a tree of ``size`` leaves, largest first."""
    found = []
    covered = 0
    for level in range(size.bit_length() - 1, -1, -1):
        if size >> level & 1:
            found.append((level, covered >> level))
            covered += 1 << level
    return found


@dataclass(frozen=True, slots=True)
class Tree:
    """The right edge of a tree: all that appending and the current root need."""

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    @staticmethod
    def load(size: int, read: ReadNode) -> Tree:
        """Return the tree of the first ``size`` leaves from stored nodes."""
        return Tree(size, tuple(read(level, position) for level, position in peaks(size)))

    def append(self, leaf: bytes) -> tuple[Tree, list[Node]]:
        """Return the tree with one more leaf (a leaf hash) and the nodes that it completed."""
        edge = list(self.peaks)
        nodes = [Node(0, self.size, leaf)]
        current, position, level = leaf, self.size, 0
        while position & 1:
            current = node_hash(edge.pop(), current)
            position >>= 1
            level += 1
            nodes.append(Node(level, position, current))
        edge.append(current)
        return Tree(self.size + 1, tuple(edge)), nodes

    @property
    def root(self) -> bytes:
        """The Merkle tree hash."""
        return _fold(list(self.peaks)) if self.peaks else EMPTY_ROOT


def _fold(edge: list[bytes]) -> bytes:
    current = edge.pop()
    while edge:
        current = node_hash(edge.pop(), current)
    return current


def root_at(size: int, read: ReadNode) -> bytes:
    """Return the root that the tree had with ``size`` leaves."""
    return Tree.load(size, read).root


def _range_hash(start: int, end: int, read: ReadNode) -> bytes:
    """Hash of the leaves ``start`` to ``end``, where ``start`` is a multiple of the range's leading power of two."""
    return _fold([read(level, (start >> level) + position) for level, position in peaks(end - start)])


def inclusion_proof(index: int, size: int, read: ReadNode) -> list[bytes]:
    """Return the audit path of leaf ``index`` in the tree of ``size`` leaves (RFC 6962, 2.1.1).

    Raises:
        ValueError: unless ``0 <= index < size``.
    """
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} is not in a tree of {size}")
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_range_hash(middle, end, read))
            end = middle
        else:
            path.append(_range_hash(start, middle, read))
            start = middle
    path.reverse()
    return path


def consistency_proof(old: int, new: int, read: ReadNode) -> list[bytes]:
    """Return the proof that the tree of ``new`` leaves extends the one of ``old`` (RFC 6962, 2.1.2).

    Empty where ``old`` is 0 or equal to ``new``.

    Raises:
        ValueError: unless ``0 <= old <= new``.
    """
    if not 0 <= old <= new:
        raise ValueError(f"a tree of {new} does not extend one of {old}")
    proof: list[bytes] = []
    if old in (0, new):
        return proof
    start, end, whole = 0, new, True
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            proof.append(_range_hash(middle, end, read))
            end = middle
        else:
            proof.append(_range_hash(start, middle, read))
            start, whole = middle, False
    if not whole:
        proof.append(_range_hash(start, end, read))
    proof.reverse()
    return proof


def _split(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << (size - 1).bit_length() - 1


def verify_inclusion(index: int, size: int, leaf: bytes, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether ``proof`` shows that ``leaf`` (a leaf hash) is leaf ``index`` of the tree (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size or not _all_hashes([leaf, root, *proof]):
        return False
    fn, sn, current = index, size - 1, leaf
    for sibling in proof:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            current = node_hash(sibling, current)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            current = node_hash(current, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and current == root


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether ``proof`` shows that the tree of ``new`` leaves extends the one of ``old`` (RFC 9162, 2.1.4.2).

    Everything extends the empty tree, with an empty proof; a tree extends itself, with an empty proof.
    """
    if not 0 <= old <= new or not _all_hashes([old_root, new_root, *proof]):
        return False
    if old == 0:
        return not proof and old_root == EMPTY_ROOT and (new > 0 or new_root == EMPTY_ROOT)
    if old == new:
        return not proof and old_root == new_root
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    if not path:
        return False
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            second = node_hash(second, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and first == old_root and second == new_root


def _all_hashes(hashes: Sequence[bytes]) -> bool:
    return all(len(item) == HASH_SIZE for item in hashes)
