"""The Merkle tree: published roots and proofs, every small tree, and what must not verify."""

from __future__ import annotations

import unittest

from interlock_tools.receipts.merkle import (
    EMPTY_ROOT,
    Tree,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root_at,
    verify_consistency,
    verify_inclusion,
)

# Inputs and roots that the Certificate Transparency reference implementation has published since RFC 6962.
LEAVES = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
H = 20


class Log:
    """A tree with its nodes in memory."""

    def __init__(self, leaves: list[bytes]) -> None:
        self.tree = Tree()
        self.nodes: dict[tuple[int, int], bytes] = {}
        self.roots = [EMPTY_ROOT]
        for leaf in leaves:
            self.tree, new = self.tree.append(leaf_hash(leaf))
            for node in new:
                assert (node.level, node.position) not in self.nodes
                self.nodes[node.level, node.position] = node.hash
            self.roots.append(self.tree.root)

    def read(self, level: int, index: int) -> bytes:
        return self.nodes[level, index]


class PublishedTree(unittest.TestCase):
    def test_roots(self) -> None:
        log = Log(LEAVES)
        self.assertEqual([root.hex() for root in log.roots], ROOTS)
        self.assertEqual([root_at(size, log.read).hex() for size in range(9)], ROOTS)

    def test_inclusion_paths(self) -> None:
        log = Log(LEAVES)
        paths = {
            (0, 8): [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
            (5, 8): [
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
            (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
        }
        for (index, size), path in paths.items():
            self.assertEqual([item.hex() for item in inclusion_proof(index, size, log.read)], path)

    def test_consistency_paths(self) -> None:
        log = Log(LEAVES)
        paths = {
            (1, 8): [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
            (6, 8): [
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        }
        for (old, new), path in paths.items():
            self.assertEqual([item.hex() for item in consistency_proof(old, new, log.read)], path)

    def test_rfc9162_example_tree(self) -> None:
        # Section 2.1.5: the seven-leaf tree and the proofs spelled out there by node name.
        log = Log([bytes([number]) for number in range(7)])
        a, b, c, d, e, f, j = (log.nodes[0, number] for number in range(7))
        g, h, i = node_hash(a, b), node_hash(c, d), node_hash(e, f)
        k = node_hash(g, h)
        self.assertEqual(log.tree.root, node_hash(k, node_hash(i, j)))
        self.assertEqual(inclusion_proof(0, 7, log.read), [b, h, node_hash(i, j)])
        self.assertEqual(inclusion_proof(3, 7, log.read), [c, g, node_hash(i, j)])
        self.assertEqual(inclusion_proof(4, 7, log.read), [f, j, k])
        self.assertEqual(inclusion_proof(6, 7, log.read), [i, k])
        self.assertEqual(consistency_proof(3, 7, log.read), [c, d, g, node_hash(i, j)])
        self.assertEqual(consistency_proof(4, 7, log.read), [node_hash(i, j)])
        self.assertEqual(consistency_proof(6, 7, log.read), [i, j, k])


class EverySmallTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.log = Log([bytes([number]) for number in range(H)])

    def test_inclusion(self) -> None:
        for size in range(1, H + 1):
            for index in range(size):
                leaf, root = self.log.nodes[0, index], self.log.roots[size]
                proof = inclusion_proof(index, size, self.log.read)
                self.assertTrue(verify_inclusion(index, size, leaf, proof, root))
                for wrong in range(size + 1):
                    self.assertEqual(verify_inclusion(wrong, size, leaf, proof, root), wrong == index)
                self.assertFalse(verify_inclusion(index, size, leaf_hash(b"other"), proof, root))
                self.assertFalse(verify_inclusion(index, size, leaf, [*proof, bytes(32)], root))
                if proof:
                    self.assertFalse(verify_inclusion(index, size, leaf, proof[:-1], root))
                    self.assertFalse(verify_inclusion(index, size, leaf, [bytes(32), *proof[1:]], root))

    def test_consistency(self) -> None:
        for new in range(H + 1):
            for old in range(new + 1):
                old_root, new_root = self.log.roots[old], self.log.roots[new]
                proof = consistency_proof(old, new, self.log.read)
                self.assertTrue(verify_consistency(old, new, old_root, new_root, proof), (old, new))
                self.assertFalse(verify_consistency(old, new, bytes(32), new_root, proof))
                self.assertFalse(verify_consistency(old, new, old_root, bytes(32), proof) and old > 0)
                self.assertFalse(verify_consistency(old, new, old_root, new_root, [*proof, bytes(32)]))
                if proof:
                    self.assertFalse(verify_consistency(old, new, old_root, new_root, proof[1:]))
                    self.assertFalse(verify_consistency(old, new, old_root, new_root, proof[:-1]))
                for other in range(new + 1):
                    if other != old:
                        self.assertFalse(verify_consistency(other, new, self.log.roots[old], new_root, proof))

    def test_loading_from_nodes_and_going_on(self) -> None:
        for size in range(H):
            tree, nodes = Tree.load(size, self.log.read).append(self.log.nodes[0, size])
            self.assertEqual(tree.root, self.log.roots[size + 1])
            self.assertTrue(all(self.log.nodes[node.level, node.position] == node.hash for node in nodes))


class WrongShapes(unittest.TestCase):
    def test_sizes(self) -> None:
        leaf = leaf_hash(b"")
        self.assertFalse(verify_inclusion(0, 0, leaf, [], EMPTY_ROOT))
        self.assertFalse(verify_inclusion(0, 0, EMPTY_ROOT, [], EMPTY_ROOT))
        self.assertFalse(verify_inclusion(-1, 1, leaf, [], leaf))
        self.assertTrue(verify_inclusion(0, 1, leaf, [], leaf))
        self.assertFalse(verify_consistency(2, 1, leaf, leaf, []))
        self.assertFalse(verify_consistency(-1, 1, leaf, leaf, []))
        self.assertFalse(verify_consistency(0, 0, leaf, leaf, []))
        self.assertTrue(verify_consistency(0, 0, EMPTY_ROOT, EMPTY_ROOT, []))
        self.assertFalse(verify_consistency(0, 0, EMPTY_ROOT, leaf, []))
        log = Log([b"a", b"b"])
        for index, size in ((0, 0), (2, 2), (-1, 2)):
            with self.assertRaises(ValueError):
                inclusion_proof(index, size, log.read)
        with self.assertRaises(ValueError):
            consistency_proof(3, 2, log.read)

    def test_hash_lengths(self) -> None:
        leaf = leaf_hash(b"")
        root = node_hash(leaf, leaf)
        self.assertTrue(verify_inclusion(0, 2, leaf, [leaf], root))
        for wrong in (b"", leaf[:31], leaf + b"\x00", leaf + leaf):
            self.assertFalse(verify_inclusion(0, 2, wrong, [leaf], root))
            self.assertFalse(verify_inclusion(0, 2, leaf, [wrong], root))
            self.assertFalse(verify_inclusion(0, 2, leaf, [leaf], wrong))
            self.assertFalse(verify_consistency(1, 2, leaf, root, [wrong]))
            self.assertFalse(verify_consistency(1, 2, wrong, root, [leaf]))
            self.assertFalse(verify_consistency(1, 2, leaf, wrong, [leaf]))

    def test_an_inner_node_is_not_a_leaf(self) -> None:
        log = Log([b"a", b"b", b"c", b"d"])
        inner = log.nodes[1, 0]
        self.assertFalse(verify_inclusion(0, 4, inner, [log.nodes[1, 1]], log.roots[4]))


if __name__ == "__main__":
    unittest.main()
