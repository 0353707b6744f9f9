"""The formats below the record: strict JSON, keys, DSSE, signed notes, checkpoints, proofs and policies."""

from __future__ import annotations

import base64
import random
import unittest
from typing import Any

import rfc8785
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from interlock_tools.receipts.checkpoint import (
    Checkpoint,
    cosign,
    cosigned_at,
    parse_checkpoint,
    parse_signed_checkpoint,
    sign_checkpoint,
)
from interlock_tools.receipts.dsse import Envelope, pae, seal, signed_by
from interlock_tools.receipts.errors import FormatError, PolicyError
from interlock_tools.receipts.keys import (
    COSIGNATURE,
    CallSigner,
    KeySigner,
    check_public_key,
    key_id,
    parse_verifier_key,
    verifier_key,
    verify_signature,
)
from interlock_tools.receipts.merkle import EMPTY_ROOT, Tree, inclusion_proof, leaf_hash
from interlock_tools.receipts.note import Note, note_signed_by, parse_note, parse_signature_lines, sign_note
from interlock_tools.receipts.policy import parse_policy
from interlock_tools.receipts.proof import Proof, parse_proof
from interlock_tools.receipts.strict import (
    canonical_json,
    format_base64,
    parse_base64,
    parse_canonical_json,
    parse_decimal,
    parse_hex,
    parse_json,
)

WRITER = KeySigner("writer.example/1", b"w" * 32)
LOG = KeySigner("log.example/refunds", b"l" * 32)
WITNESS = KeySigner("witness.example/a", b"a" * 32)
OTHER = KeySigner("witness.example/b", b"b" * 32)

BAD_DECIMALS = (
    "042",
    "-1",
    "+1",
    "4_2",
    "4 2",
    " 42",
    "42 ",
    "٤٢",
    "４２",
    "",
    "0x2a",
    "4.0",
    "1e3",
    "-0",
    "00",
    "9" * 19,
)


class StrictJson(unittest.TestCase):
    def test_writes_what_rfc8785_writes(self) -> None:
        chance = random.Random(8785)
        for _ in range(300):
            value = _random_value(chance, 4)
            self.assertEqual(canonical_json(value), rfc8785.dumps(value))
            self.assertEqual(parse_canonical_json(canonical_json(value)), value)

    def test_published_vectors_without_floats(self) -> None:
        # The test data of RFC 8785's reference implementation (arrays, unicode, structures without floats).
        self.assertEqual(canonical_json({"unnormalised": "A\u030a"}), '{"unnormalised":"A\u030a"}'.encode())
        self.assertEqual(canonical_json([56, {"d": True, "10": None, "1": []}]), b'[56,{"1":[],"10":null,"d":true}]')
        value = {
            "1": {"f": {"f": "hi", "F": 5}, "z": 56},
            "10": {},
            "": "empty",
            "a": {},
            "111": [{"e": "yes", "E": "no"}],
            "A": {},
        }
        self.assertEqual(
            canonical_json(value),
            b'{"":"empty","1":{"f":{"F":5,"f":"hi"},"z":56},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
        )
        text = '\u20ac$\u000f\nA\'B"\\\\"/'
        self.assertEqual(canonical_json([text]), '["€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"]'.encode())

    def test_the_door_refuses_what_could_be_written_in_two_ways(self) -> None:
        for value in (1.0, float("nan"), 2**53, -(2**53), {"é": 1}, {"\n": 1}, {1: 2}, "\ud800", (1,), b"x", {1}):
            with self.subTest(value=value), self.assertRaises(FormatError):
                canonical_json({"v": value})

    def test_reads_one_spelling_only(self) -> None:
        for text in (
            '{"a":1,"a":1}',
            '{"a":1.0}',
            '{"a":1e3}',
            '{"a":NaN}',
            '{"a":Infinity}',
            '{"a":9007199254740992}',
            '{"a":-0}',
            '{"a":"\\ud800"}',
            '{"\\ud800":1}',
            '{"a":01}',
            '{"a":1}x',
            "",
            "[" * 200 + "]" * 200,
            "[" * 100_000,
            '{"a":' + "9" * 5000 + "}",
        ):
            with self.subTest(text=text[:30]), self.assertRaises(FormatError):
                parse_json(text.encode())
        for data in (b"\xff", b'"\xed\xa0\x80"', b"\xef\xbb\xbf{}"):
            with self.subTest(data=data), self.assertRaises(FormatError):
                parse_json(data)
        with self.assertRaises(FormatError):
            parse_json(b"[1,2]", max_bytes=4)

    def test_canonical_bytes_only(self) -> None:
        good = b'{"a":"\xc3\xa9","b":[1,null]}'
        self.assertEqual(parse_canonical_json(good), {"a": "é", "b": [1, None]})
        for data in (
            b'{"b":[1,null],"a":"\xc3\xa9"}',
            b'{"a":"\\u00e9","b":[1,null]}',
            b'{"a":"\xc3\xa9", "b":[1,null]}',
            good + b"\n",
        ):
            with self.subTest(data=data), self.assertRaises(FormatError):
                parse_canonical_json(data)

    def test_decimals(self) -> None:
        self.assertEqual([parse_decimal(text) for text in ("0", "42", str(2**63 - 1))], [0, 42, 2**63 - 1])
        for text in (*BAD_DECIMALS, str(2**63)):
            with self.subTest(text=text), self.assertRaises(FormatError):
                parse_decimal(text)

    def test_base64_and_hex(self) -> None:
        self.assertEqual(parse_base64("AAE="), b"\x00\x01")
        for text in ("AAE", "AAF=", "AAE=\n", "AA E=", "AA-_", "AAE==", "ÄAE="):
            with self.subTest(text=text), self.assertRaises(FormatError):
                parse_base64(text)
        with self.assertRaises(FormatError):
            parse_base64("AAE=", length=3)
        self.assertEqual(parse_hex("00ff", 2), b"\x00\xff")
        for text in ("00FF", "0ff", "00ff00", "00 f", "0x0f", "٠٠ff"):
            with self.subTest(text=text), self.assertRaises(FormatError):
                parse_hex(text, 2)


def _random_value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(7 if depth else 5)
    if kind == 0:
        return chance.choice([None, True, False])
    if kind == 1:
        return chance.randint(-(2**53) + 1, 2**53 - 1)
    if kind < 5:
        return "".join(chr(chance.choice([chance.randrange(128), chance.randrange(0xD800), 0x1F600])) for _ in range(6))
    if kind == 5:
        return [_random_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    keys = ["".join(chr(chance.randrange(0x20, 0x7F)) for _ in range(chance.randrange(4))) for _ in range(4)]
    return {key: _random_value(chance, depth - 1) for key in keys}


class Keys(unittest.TestCase):
    def test_published_verifier_keys(self) -> None:
        # From the documentation and tests of the Go signed-note implementation, and the Go checksum database.
        for text in (
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop",
            "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
        ):
            self.assertEqual(str(parse_verifier_key(text, (1, 4))), text)

    def test_rfc8032_vector(self) -> None:
        seed = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
        signer = KeySigner("k", seed)
        self.assertEqual(signer.public_key.hex(), "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
        self.assertEqual(
            signer.sign(b"\x72").hex(),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        )

    def test_dangerous_public_keys_are_refused(self) -> None:
        p = 2**255 - 19
        order_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
        for y in (0, 1, p - 1, order_8, p - order_8, p, p + 1, 2**255 - 1, 2):
            for sign in (0, 1 << 255):
                with self.subTest(y=y, sign=bool(sign)), self.assertRaises(FormatError):
                    check_public_key((y | sign).to_bytes(32, "little"))
        for order in (order_8, p - order_8):
            self.assertTrue(_is_small_order(order, p))
        for length in (0, 31, 33):
            with self.assertRaises(FormatError):
                check_public_key(b"\x07" * length)
        check_public_key(WRITER.public_key)

    def test_a_small_order_key_would_have_accepted_a_forgery(self) -> None:
        identity = (1).to_bytes(32, "little")
        forged = identity + bytes(32)  # R = identity, S = 0
        self.assertTrue(verify_signature(identity, forged, b"anything"), "why such keys are refused when read")

    def test_malformed_verifier_keys(self) -> None:
        good = str(verifier_key(WRITER))
        name, hint, encoded = good.split("+", 2)
        for text in (
            "",
            "a",
            name,
            f"{name}+{hint}",
            f"{name}+{hint.upper()}x+{encoded}",
            f"{name}+00000000+{encoded}",
            f"other+{hint}+{encoded}",
            f" {good}",
            good + "=",
            f"+{hint}+{encoded}",
            good[:-4],
        ):
            with self.subTest(text=text), self.assertRaises(FormatError):
                parse_verifier_key(text)
        with self.assertRaises(FormatError):
            parse_verifier_key(str(verifier_key(WITNESS, COSIGNATURE)))

    def test_a_signing_function_is_checked(self) -> None:
        good = CallSigner(WRITER.name, WRITER.public_key, WRITER.sign)
        self.assertEqual(good.sign(b"m"), WRITER.sign(b"m"))
        with self.assertRaises(FormatError):
            CallSigner(WRITER.name, WRITER.public_key, OTHER.sign).sign(b"m")


def _is_small_order(y: int, p: int) -> bool:
    """Whether the point with this y is killed by 8, by doubling it three times in affine coordinates."""
    d = -121665 * pow(121666, -1, p) % p
    square = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
    x = pow(square, (p + 3) // 8, p)
    if x * x % p != square:
        x = x * pow(2, (p - 1) // 4, p) % p
    if x * x % p != square:
        return False
    for _ in range(3):
        k = d * x * x * y * y % p
        x, y = 2 * x * y * pow(1 + k, -1, p) % p, (y * y + x * x) * pow(1 - k, -1, p) % p
    return (x, y) == (0, 1)


class Dsse(unittest.TestCase):
    def test_published_example(self) -> None:
        # The worked example of the DSSE specification: ECDSA over NIST P-256, deterministic (RFC 6979).
        document = {
            "payload": "aGVsbG8gd29ybGQ=",
            "payloadType": "http://example.com/HelloWorld",
            "signatures": [
                {
                    "keyid": "",
                    "sig": "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA==",
                }
            ],
        }
        envelope = Envelope.from_json(document)
        self.assertEqual(envelope.to_json(), document)
        self.assertEqual(envelope.pae, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world")
        public = ec.EllipticCurvePublicNumbers(
            46950820868899156662930047687818585632848591499744589407958293238635476079160,
            5640078356564379163099075877009565129882514886557779369047442380624545832820,
            ec.SECP256R1(),
        ).public_key()
        raw = envelope.signatures[0].sig
        signature = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        public.verify(signature, envelope.pae, ec.ECDSA(hashes.SHA256()))

    def test_lengths_are_counted_in_bytes(self) -> None:
        self.assertEqual(pae("application/vnd.café+json", b""), b"DSSEv1 26 application/vnd.caf\xc3\xa9+json 0 ")
        with self.assertRaises(FormatError):
            pae("\ud800", b"")

    def test_seal_and_check(self) -> None:
        envelope = Envelope.from_json(seal(b"{}", WRITER).to_json())
        key = verifier_key(WRITER)
        self.assertEqual(signed_by(envelope, [verifier_key(OTHER), key]), key)
        self.assertIsNone(signed_by(envelope, [verifier_key(OTHER)]))
        self.assertIsNone(signed_by(seal(b"{}", None), [key]))
        self.assertIsNone(signed_by(Envelope(b"{ }", envelope.payload_type, envelope.signatures), [key]))
        self.assertIsNone(signed_by(Envelope(b"{}", "text/plain", envelope.signatures), [key]))

    def test_the_key_id_decides_nothing(self) -> None:
        document = seal(b"{}", WRITER).to_json()
        document["signatures"][0]["keyid"] = verifier_key(OTHER).key_id.hex()
        self.assertEqual(signed_by(Envelope.from_json(document), [verifier_key(WRITER)]), verifier_key(WRITER))
        del document["signatures"][0]["keyid"]
        self.assertEqual(signed_by(Envelope.from_json(document), [verifier_key(WRITER)]), verifier_key(WRITER))

    def test_malformed_envelopes(self) -> None:
        good = seal(b"{}", WRITER).to_json()
        for change in (
            {"payload": "e30"},
            {"payload": 1},
            {"payloadType": None},
            {"signatures": {}},
            {"signatures": [1]},
            {"more": 1},
            {"signatures": [{"sig": "e30=", "cert": ""}]},
            {"signatures": [{"keyid": ""}]},
            {"signatures": good["signatures"] * 17},
        ):
            with self.subTest(change=change), self.assertRaises(FormatError):
                Envelope.from_json({**good, **change})
        for value in (None, [], "x", {"payload": "e30="}):
            with self.subTest(value=value), self.assertRaises(FormatError):
                Envelope.from_json(value)


class Notes(unittest.TestCase):
    PUBLISHED = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
        "\n"
        "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
    )

    def test_published_note(self) -> None:
        # The example of the Go signed-note documentation.
        note = parse_note(self.PUBLISHED)
        self.assertEqual(str(note), self.PUBLISHED)
        key = parse_verifier_key("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
        self.assertTrue(note_signed_by(note, key))
        self.assertFalse(note_signed_by(note, verifier_key(LOG)))
        with self.assertRaises(FormatError):
            note_signed_by(parse_note(self.PUBLISHED.replace("know", "KNOW")), key)

    def test_several_signers(self) -> None:
        note = sign_note("hello\n", WRITER, OTHER)
        self.assertEqual(parse_note(str(note)), note)
        for signer in (WRITER, OTHER):
            self.assertTrue(note_signed_by(note, verifier_key(signer)))
        self.assertEqual(note.with_signatures(note.signatures), note)

    def test_malformed_notes(self) -> None:
        for text in (
            "",
            "\n",
            "hello\n",
            "hello\n\n",
            self.PUBLISHED[:-1],
            self.PUBLISHED + "\n",
            self.PUBLISHED.replace("— ", "- "),
            self.PUBLISHED.replace("— ", "—"),
            self.PUBLISHED.replace("nAM=", "nAN="),
            "a\tb\n\n— n AAAAAAA=\n",
            "a\r\n\n— n AAAAAAA=\n",
            "\n\n— n AAAAAAA=\n",
            "a\n\n— n AAAA\n",
            "a\n\n— n  AAAAAAA=\n",
            "a\n\n— n+ AAAAAAA=\n",
            "a\n\n" + "— n AAAAAAA=\n" * 101,
            "a" * 1_000_001,
        ):
            with self.subTest(text=text[:40]), self.assertRaises(FormatError):
                parse_note(text)
        with self.assertRaises(FormatError):
            sign_note("no newline", WRITER)
        with self.assertRaises(FormatError):
            parse_signature_lines("")


class Checkpoints(unittest.TestCase):
    POINT = Checkpoint(LOG.name, 3, bytes(range(32)))

    def test_round_trip_with_cosignatures(self) -> None:
        signed = sign_checkpoint(self.POINT, LOG)
        signed = signed.with_signatures([cosign(signed.text, WITNESS, 1_700_000_000), cosign(signed.text, OTHER, 5)])
        point, note = parse_signed_checkpoint(str(signed))
        self.assertEqual((point, note), (self.POINT, signed))
        self.assertTrue(note_signed_by(note, verifier_key(LOG)))
        self.assertEqual(cosigned_at(note, verifier_key(WITNESS, COSIGNATURE)), 1_700_000_000)
        self.assertEqual(cosigned_at(note, verifier_key(OTHER, COSIGNATURE)), 5)
        self.assertIsNone(cosigned_at(note, verifier_key(WRITER, COSIGNATURE)))

    def test_a_cosignature_is_bound_to_text_time_and_length(self) -> None:
        signed = sign_checkpoint(self.POINT, LOG)
        line = cosign(signed.text, WITNESS, 7)
        key = verifier_key(WITNESS, COSIGNATURE)
        for text, signature in (
            (signed.text.replace("\n3\n", "\n4\n"), line.signature),
            (signed.text, (8).to_bytes(8, "big") + line.signature[8:]),
            (signed.text, line.signature[8:]),
            (signed.text, line.signature + b"\x00"),
        ):
            forged = Note(text, (type(line)(line.name, line.key_id, signature),))
            with self.subTest(text=text), self.assertRaises(FormatError):
                cosigned_at(forged, key)

    def test_malformed_checkpoints(self) -> None:
        root = format_base64(bytes(32))
        for text in (
            "log\n3\n",
            f"log\n3\n{root}",
            f"log\n3\n{root}\n\n",
            f"lo g\n3\n{root}\n",
            f"\n3\n{root}\n",
            "log\n3\nAAAA\n",
            f"log\n0\n{root}\n",
            f"log\n3\n{root[:-1]}\n",
            *(f"log\n{size}\n{root}\n" for size in BAD_DECIMALS[:-1]),
        ):
            with self.subTest(text=text), self.assertRaises(FormatError):
                parse_checkpoint(text)
        empty = parse_checkpoint(f"log\n0\n{format_base64(EMPTY_ROOT)}\n")
        self.assertEqual(empty, Checkpoint("log", 0, EMPTY_ROOT))
        self.assertEqual(parse_checkpoint(f"log\n1\n{root}\nmore\n").extensions, ("more",))

    def test_a_log_signs_under_its_own_name(self) -> None:
        with self.assertRaises(FormatError):
            sign_checkpoint(self.POINT, WRITER)


class Proofs(unittest.TestCase):
    def setUp(self) -> None:
        tree, nodes = Tree(), {}
        for number in range(7):
            tree, new = tree.append(leaf_hash(bytes([number])))
            nodes.update({(node.level, node.position): node.hash for node in new})
        self.note = sign_checkpoint(Checkpoint(LOG.name, tree.size, tree.root), LOG)
        point, _ = parse_signed_checkpoint(str(self.note))
        path = inclusion_proof(4, 7, lambda level, index: nodes[level, index])
        self.proof = Proof(4, tuple(path), point, self.note)

    def test_round_trip(self) -> None:
        text = str(self.proof)
        self.assertTrue(text.startswith("c2sp.org/tlog-proof@v1\nindex 4\n"))
        self.assertEqual(parse_proof(text), self.proof)
        self.assertTrue(parse_proof(text).includes(leaf_hash(b"\x04")))
        self.assertFalse(parse_proof(text).includes(leaf_hash(b"\x05")))
        extra = text.replace("@v1\n", "@v1\nextra AAE=\n")
        self.assertEqual(parse_proof(extra).extra, b"\x00\x01")
        self.assertEqual(str(parse_proof(extra)), extra)

    def test_malformed_proofs(self) -> None:
        good = str(self.proof)
        for text in (
            "",
            good.replace("@v1", "@v2"),
            good.replace("index 4\n", ""),
            good.replace("index", "INDEX"),
            good.replace("index 4\n", "index 4\nAAAA\n"),
            good.replace("\n\n", "\n", 1),
            good[:-1],
            good.replace("index 4\n", "index 4\n" + (format_base64(bytes(32)) + "\n") * 64),
            *(good.replace("index 4\n", f"index {index}\n") for index in BAD_DECIMALS[:-1]),
        ):
            with self.subTest(text=text[:60]), self.assertRaises(FormatError):
                parse_proof(text)


class Policies(unittest.TestCase):
    WRITER_LINE = f"writer {verifier_key(WRITER)}\n"
    LOG_LINE = f"log {verifier_key(LOG)} https://log.example/\n"
    WITNESS_LINES = (
        f"witness a {verifier_key(WITNESS, COSIGNATURE)} https://a.example/\n"
        f"witness b {verifier_key(OTHER, COSIGNATURE)}\n"
    )

    def test_a_policy_with_groups(self) -> None:
        text = (
            "# who may sign\n\n"
            + self.WRITER_LINE
            + self.LOG_LINE
            + self.WITNESS_LINES
            + "group\tboth  all a b \ngroup either any a b\ngroup nested 2 both either\nquorum nested\n"
        )
        policy = parse_policy(text.encode())
        self.assertEqual(policy.writers, (verifier_key(WRITER),))
        self.assertEqual(policy.urls["a"], "https://a.example/")
        self.assertEqual([policy.met_by(set(seen)) for seen in ("", "a", "b", "ab")], [False, False, False, True])
        self.assertEqual(parse_policy(str(policy)), policy)

    def test_no_quorum_is_never_met(self) -> None:
        policy = parse_policy(self.LOG_LINE + self.WITNESS_LINES + "quorum none\n")
        self.assertFalse(policy.met_by({"a", "b"}))
        self.assertFalse(parse_policy(self.WRITER_LINE).met_by(set()))

    def test_refused_policies(self) -> None:
        base = self.WRITER_LINE + self.LOG_LINE + self.WITNESS_LINES
        for text in (
            "",
            "# nothing\n",
            base,
            base + "quorum a\nquorum b\n",
            base + "quorum c\n",
            base + "quorum\n",
            base + "quorum a b\n",
            base + "allow all\nquorum a\n",
            base + self.WITNESS_LINES + "quorum a\n",
            base + self.LOG_LINE + "quorum a\n",
            base + "group a any a b\nquorum a\n",
            base + "group none any a b\nquorum none\n",
            base + "group g any a c\nquorum g\n",
            base + "group g any a a\nquorum g\n",
            base + "group g 0 a b\nquorum g\n",
            base + "group g 3 a b\nquorum g\n",
            *(base + f"group g {number} a b\nquorum g\n" for number in ("01", "-1", "4_2", "٢", "1.0")),
            base + f"witness c {verifier_key(WITNESS, COSIGNATURE)}\nquorum a\n",
            base + f"witness c {verifier_key(KeySigner('c', b'w' * 32), COSIGNATURE)}\nquorum a\n",
            base + f"witness c {verifier_key(KeySigner('c', b'c' * 32))}\nquorum a\n",
            f"writer {verifier_key(WITNESS, COSIGNATURE)}\n",
            "writer\n",
            "writer x\n",
        ):
            with self.subTest(text=text[-80:]), self.assertRaises(PolicyError):
                parse_policy(text)
        with self.assertRaises(PolicyError):
            parse_policy(b"\xff")

    def test_dangerous_keys_are_refused_when_the_policy_is_loaded(self) -> None:
        p = 2**255 - 19
        for y in (0, 1, p - 1, p, p + 3, 2):
            raw = y.to_bytes(32, "little")
            name = "evil.example"
            hint = key_id(name, 1, raw).hex()
            with self.subTest(y=y), self.assertRaisesRegex(PolicyError, "line 1"):
                parse_policy(f"writer {name}+{hint}+{base64.b64encode(bytes([1]) + raw).decode()}\n")


if __name__ == "__main__":
    unittest.main()
