"""Forged receipts: each fails at the line it names, while its unforged twin passes in the same test.

Three forgers: one who holds no key (a file in the mail), the operator with the
writer's key, and the operator with the writer's and the log's. A forgery either
fails a check, or what it wants to show is no longer shown and the receipt falls
below the policy.

Longer than other modules because every forgery is spelled out once, in one place.
"""

from __future__ import annotations

import base64
import functools
import json
import unittest
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import rfc8785

from interlock_tools.core.canonical import canonical, digest
from interlock_tools.core.entries import Entry, Kind
from interlock_tools.receipts import Answer, Policy, PolicyError, Word, parse_policy, verify
from interlock_tools.receipts.build import Consistency, build_receipt, connect, prove
from interlock_tools.receipts.checkpoint import Checkpoint, cosign, sign_checkpoint
from interlock_tools.receipts.dsse import Envelope, seal
from interlock_tools.receipts.keys import COSIGNATURE, KeySigner, Signer, key_id, verifier_key
from interlock_tools.receipts.merkle import EMPTY_ROOT
from interlock_tools.receipts.note import Note
from interlock_tools.receipts.proof import Proof, parse_proof
from interlock_tools.receipts.record import Head, KeyChange, Record, record_hash
from interlock_tools.receipts.strict import canonical_json, format_base64
from interlock_tools.testing.receipts import (
    EVIDENCE,
    FACTS,
    START_MS,
    STORIES,
    Book,
    Story,
    clock,
    dispatched,
    grant,
    proposed,
)

WRITER = KeySigner("writer.example/1", b"w" * 32)
NEXT_WRITER = KeySigner("writer.example/2", b"x" * 32)
LOG = KeySigner("log.example/refunds", b"l" * 32)
NEXT_LOG = KeySigner("log.example/refunds", b"m" * 32)
WITNESS_A = KeySigner("witness.example/a", b"a" * 32)
WITNESS_B = KeySigner("witness.example/b", b"b" * 32)
MALLORY = KeySigner("writer.example/1", b"z" * 32)
BOTH = (WITNESS_A, WITNESS_B)

POLICY_TEXT = (
    f"writer {verifier_key(WRITER)}\n"
    f"log {verifier_key(LOG)}\n"
    f"witness a {verifier_key(WITNESS_A, COSIGNATURE)}\n"
    f"witness b {verifier_key(WITNESS_B, COSIGNATURE)}\n"
    "group both all a b\nquorum both\n"
)
POLICY = parse_policy(POLICY_TEXT)
UNSIGNED = parse_policy(f"writer {verifier_key(WRITER)}\n")

Document = dict[str, Any]
Forgery = Callable[[], "bytes | Document"]

FORGERIES: dict[str, tuple[str, Answer, Forgery]] = {}
"""By name: the line at which it fails, what that line then says, and the forged receipt."""


def forgery(line: str, says: Answer = Answer.NO) -> Callable[[Forgery], Forgery]:
    def register(make: Forgery) -> Forgery:
        name = make.__name__
        assert name not in FORGERIES
        FORGERIES[name] = (line, says, make)
        return make

    return register


# -- genuine receipts ------------------------------------------------------------------------------


def book_of(*stories: Story, writer: Signer | None = WRITER, log: Signer = LOG) -> tuple[Book, list[str]]:
    book = Book(writer, log)
    return book, [book.write(story) for story in stories]


def issued(*stories: Story, writer: Signer | None = WRITER, log: Signer = LOG) -> Document:
    """The receipt of the first story, in a log that holds all of them, witnessed by both."""
    book, effects = book_of(*stories, writer=writer, log=log)
    book.checkpoint(BOTH)
    return parsed(book.receipt(effects[0]))


def parsed(receipt: bytes) -> Document:
    document: Document = json.loads(receipt)
    return document


@functools.cache
def _twin() -> str:
    return json.dumps(issued(STORIES["settled"], STORIES["refused"]))


def twin() -> Document:
    """A genuine receipt, a fresh copy each time."""
    document: Document = json.loads(_twin())
    return document


# -- tools of the trade ----------------------------------------------------------------------------


def payload_of(envelope: Document) -> Document:
    statement: Document = json.loads(base64.b64decode(envelope["payload"]))
    return statement


def put_payload(envelope: Document, raw: bytes | Document) -> None:
    envelope["payload"] = format_base64(raw if isinstance(raw, bytes) else canonical_json(raw))


def edit(document: Document, number: int, change: Callable[[Document], Any]) -> Document:
    """Edit the predicate of record ``number`` in place, signature and all else left as they are."""
    envelope = document["records"][number - 1]
    statement = payload_of(envelope)
    change(statement["predicate"])
    put_payload(envelope, statement)
    return document


def rehash(document: Document, signer: Signer | None) -> Document:
    """Chain the records and the head anew after an edit, and sign them all."""
    prev: str | None = None
    records = []
    for number, envelope in enumerate(document["records"], 1):
        statement = payload_of(envelope)
        statement["predicate"].update(prev=prev, seq=number)
        sealed = seal(canonical_json(statement), signer)
        prev = record_hash(sealed.payload).hex()
        records.append(sealed.to_json())
    document["records"] = records
    head = Head.parse(base64.b64decode(document["head"]["payload"]))
    document["head"] = seal(replace(head, records=len(records), last=prev or "").payload(), signer).to_json()
    return document


def edit_proofs(document: Document, change: Callable[[str], str]) -> Document:
    document["proofs"] = [change(proof) for proof in document["proofs"]]
    return document


def flip_to_refused(document: Document) -> Document:
    """Turn the story of a refund that was made into one that never went out, keeping it legal."""
    no = {"sends": [1], "proof": "not_sent"}
    edit(document, 4, lambda p: p.update(kind="not_landed", body=no))
    return edit(document, 5, lambda p: p.update(kind="refused", body={"reason": "unreachable"}))


def without_proofs(document: Document) -> Document:
    for name in ("proofs", "consistency"):
        document.pop(name, None)
    return document


def reproved(document: Document, log: Signer | None = LOG, witnesses: tuple[KeySigner, ...] = ()) -> Document:
    """Put rewritten records into a fresh log of the operator's."""
    book = Book(WRITER, log)
    positions: list[int | None] = []
    for envelope in document["records"]:
        positions.append(book.grow(record_hash(base64.b64decode(envelope["payload"]))))
    book.checkpoint(witnesses)
    document["proofs"] = [str(proof) for proof in prove(positions, book.notes, book.read)]
    return document


# -- without any key: what a file in the mail can suffer ------------------------------------------


@forgery("writer")
def entry_edited() -> Document:
    return edit(twin(), 4, lambda p: p["body"]["evidence"].update(amount=1))


@forgery("chain")
def entry_edited_in_an_unsigned_receipt() -> Document:
    document = issued(STORIES["settled"], writer=None)
    return edit(document, 1, lambda p: p["body"].update(decided_by="propose"))


@forgery("protocol")
def outcome_flipped_and_rehashed() -> Document:
    document = without_proofs(issued(STORIES["committed"], writer=None))
    return rehash(edit(document, 4, lambda p: p.update(kind="refused", body={"reason": "rejected"})), None)


@forgery("writer", Answer.NOT_CHECKED)
def story_flipped_and_signatures_stripped() -> Document:
    return rehash(without_proofs(flip_to_refused(twin())), None)


@forgery("complete")
def tail_cut() -> Document:
    document = twin()
    del document["records"][-1], document["proofs"][-1]
    return document


@forgery("writer")
def tail_cut_and_head_edited() -> Document:
    document = tail_cut()
    head = Head.parse(base64.b64decode(document["head"]["payload"]))
    last = record_hash(base64.b64decode(document["records"][-1]["payload"])).hex()
    put_payload(document["head"], replace(head, records=4, last=last).payload())
    return document


@forgery("writer", Answer.NOT_CHECKED)
def tail_cut_and_head_unsigned() -> Document:
    document = tail_cut_and_head_edited()
    document["head"]["signatures"] = []
    return document


@forgery("chain")
def record_dropped() -> Document:
    document = twin()
    del document["records"][1], document["proofs"][1]
    return document


@forgery("chain")
def records_swapped() -> Document:
    document = twin()
    for name in ("records", "proofs"):
        document[name][1:3] = reversed(document[name][1:3])
    return document


@forgery("chain")
def record_repeated() -> Document:
    document = twin()
    for name in ("records", "proofs"):
        document[name].insert(2, document[name][1])
    return document


@forgery("identity")
def entries_of_another_effect() -> Document:
    document, other = twin(), issued(STORIES["reversed"])
    for name in ("records", "proofs"):
        document[name][3:] = other[name][3:5]
    return document


@forgery("identity")
def head_of_another_effect() -> Document:
    document = twin()
    document["head"] = issued(STORIES["reversed"])["head"]
    return document


@forgery("writer")
def signature_of_another_record() -> Document:
    document = twin()
    document["records"][3]["signatures"] = document["records"][2]["signatures"]
    return document


@forgery("writer")
def signed_again_with_another_key() -> Document:
    return rehash(without_proofs(twin()), MALLORY)


@forgery("writer")
def signed_with_another_key_under_the_trusted_key_id() -> Document:
    document = rehash(without_proofs(twin()), MALLORY)
    for envelope in (*document["records"], document["head"]):
        envelope["signatures"][0]["keyid"] = verifier_key(WRITER).key_id.hex()
    return document


@forgery("log")
def proof_of_another_tree() -> Document:
    document = twin()
    document["proofs"] = issued(STORIES["settled"], STORIES["committed"], STORIES["late"], log=LOG)["proofs"]
    document["proofs"][0] = issued(STORIES["refused"], STORIES["settled"])["proofs"][0]
    return document


@forgery("log")
def proof_of_another_leaf() -> Document:
    document = twin()
    document["proofs"][2] = document["proofs"][3]
    return document


@forgery("log")
def proof_hash_edited() -> Document:
    document = twin()
    proof = parse_proof(document["proofs"][0])
    document["proofs"][0] = str(replace(proof, hashes=(bytes(32), *proof.hashes[1:])))
    return document


@forgery("log")
def proof_hash_left_out() -> Document:
    document = twin()
    proof = parse_proof(document["proofs"][0])
    document["proofs"][0] = str(replace(proof, hashes=proof.hashes[1:]))
    return document


@forgery("log")
def checkpoint_rolled_back() -> Document:
    book, (effect,) = book_of(STORIES["settled"][:4])
    old = book.checkpoint(BOTH)
    book.go_on(effect, STORIES["settled"][4:])
    book.checkpoint(BOTH)
    document = parsed(book.receipt(effect))
    book.notes = [old]
    last = parse_proof(document["proofs"][-1])
    document["proofs"][-1] = str(Proof(last.index, last.hashes, parse_proof(document["proofs"][0]).checkpoint, old))
    document.pop("consistency")
    return document


@forgery("log")
def checkpoint_size_edited() -> Document:
    document = twin()
    size = parse_proof(document["proofs"][0]).checkpoint.size
    return edit_proofs(document, lambda text: text.replace(f"\n{size}\n", f"\n{size + 1}\n"))


@forgery("log")
def checkpoint_root_edited() -> Document:
    document = twin()
    root = format_base64(parse_proof(document["proofs"][0]).checkpoint.root)
    return edit_proofs(document, lambda text: text.replace(root, format_base64(bytes(32))))


@forgery("log")
def tree_of_size_zero() -> Document:
    document = twin()
    empty = sign_checkpoint(Checkpoint(LOG.name, 0, EMPTY_ROOT), LOG)
    document["proofs"] = [f"c2sp.org/tlog-proof@v1\nindex 0\n\n{empty}" for _ in document["proofs"]]
    return document


@forgery("format")
def tree_of_size_zero_with_a_root() -> Document:
    document = twin()
    empty = sign_checkpoint(Checkpoint(LOG.name, 0, bytes(32)), LOG)
    document["proofs"] = [f"c2sp.org/tlog-proof@v1\nindex 0\n\n{empty}" for _ in document["proofs"]]
    return document


@forgery("log", Answer.NOT_CHECKED)
def proofs_stripped() -> Document:
    return without_proofs(twin())


@forgery("log", Answer.NOT_CHECKED)
def one_proof_stripped() -> Document:
    document = twin()
    document["proofs"][3] = None
    return document


@forgery("history")
def consistency_left_out() -> Document:
    document = parsed(_two_checkpoints())
    document.pop("consistency")
    return document


@forgery("history")
def consistency_of_another_tree() -> Document:
    document = parsed(_two_checkpoints())
    document["consistency"][0]["hashes"][0] = format_base64(bytes(32))
    return document


@forgery("history")
def consistency_for_sizes_that_are_not_here() -> Document:
    document = twin()
    document["consistency"] = [Consistency(1, 2, (bytes(32),)).to_json()]
    return document


def _two_checkpoints() -> bytes:
    book, (effect,) = book_of(STORIES["settled"][:3])
    book.checkpoint(BOTH)
    book.go_on(effect, STORIES["settled"][3:])
    book.checkpoint(BOTH)
    return book.receipt(effect)


@forgery("witnesses")
def cosignature_time_edited() -> Document:
    def later(text: str) -> str:
        proof = parse_proof(text)
        lines = [
            replace(line, signature=(1).to_bytes(8, "big") + line.signature[8:])
            if line.name == WITNESS_A.name
            else line
            for line in proof.note.signatures
        ]
        return str(replace(proof, note=Note(proof.note.text, tuple(lines))))

    return edit_proofs(twin(), later)


@forgery("witnesses")
def cosignatures_of_another_checkpoint() -> Document:
    other = parse_proof(issued(STORIES["reversed"])["proofs"][0]).note

    def moved(text: str) -> str:
        proof = parse_proof(text)
        own = [line for line in proof.note.signatures if line.name == LOG.name]
        lines = [line for line in other.signatures if line.name != LOG.name]
        return str(replace(proof, note=Note(proof.note.text, (*own, *lines))))

    return edit_proofs(twin(), moved)


@forgery("witnesses", Answer.NOT_CHECKED)
def cosignature_stripped() -> Document:
    return edit_proofs(twin(), lambda text: _without(text, WITNESS_B.name))


@forgery("log")
def log_signature_stripped() -> Document:
    return edit_proofs(twin(), lambda text: _without(text, LOG.name))


def _without(text: str, name: str) -> str:
    proof = parse_proof(text)
    kept = tuple(line for line in proof.note.signatures if line.name != name)
    return str(replace(proof, note=Note(proof.note.text, kept)))


@forgery("witnesses", Answer.NOT_CHECKED)
def one_witness_counted_twice() -> Document:
    def doubled(text: str) -> str:
        proof = parse_proof(_without(text, WITNESS_B.name))
        again = cosign(proof.note.text, WITNESS_A, 99)
        return str(replace(proof, note=proof.note.with_signatures([again])))

    return edit_proofs(twin(), doubled)


@forgery("witnesses", Answer.NOT_CHECKED)
def witnesses_that_nobody_knows() -> Document:
    strangers = (KeySigner("witness.example/a", b"1" * 32), KeySigner("witness.example/b", b"2" * 32))
    book, (effect,) = book_of(STORIES["settled"])
    book.checkpoint(strangers)
    return parsed(book.receipt(effect))


# -- the file itself -------------------------------------------------------------------------------


@forgery("format")
def policy_smuggled_into_the_receipt() -> Document:
    return {**rehash(without_proofs(twin()), MALLORY), "policy": f"writer {verifier_key(MALLORY)}\n"}


@forgery("format")
def key_smuggled_into_a_signature() -> Document:
    document = rehash(without_proofs(twin()), MALLORY)
    document["records"][0]["signatures"][0]["publicKey"] = str(verifier_key(MALLORY))
    return document


@forgery("format")
def repeated_json_key() -> bytes:
    text = json.dumps(twin())
    return (text[:-1] + ', "records": []}').encode()


@forgery("format")
def repeated_json_key_in_a_record() -> Document:
    document = twin()
    raw = base64.b64decode(document["records"][3]["payload"])
    put_payload(document["records"][3], raw.replace(b'"by_us":"yes"', b'"by_us":"yes","by_us":"no"'))
    return document


@forgery("format")
def record_with_spaces_signed_by_the_writer() -> Document:
    return _raw_record(lambda raw: raw.replace(b'"by_us":"yes"', b'"by_us": "yes"'))


@forgery("format")
def record_with_keys_out_of_order_signed_by_the_writer() -> Document:
    return _raw_record(lambda raw: raw.replace(b'"by_us":"yes","evidence"', b'"evidenca":1,"by_us":"yes","evidence"'))


@forgery("format")
def record_with_needless_escapes_signed_by_the_writer() -> Document:
    return _raw_record(lambda raw: raw.replace(b'"yes"', b'"\\u0079es"'))


@forgery("format")
def amount_with_a_fraction_signed_by_the_writer() -> Document:
    return _raw_record(lambda raw: raw.replace(b'"amount":2000', b'"amount":2000.0'))


@forgery("format")
def amount_beyond_exact_integers_signed_by_the_writer() -> Document:
    return _raw_record(lambda raw: raw.replace(b'"amount":2000', b'"amount":9007199254740993'))


def _raw_record(change: Callable[[bytes], bytes]) -> Document:
    document = without_proofs(twin())
    raw = base64.b64decode(document["records"][3]["payload"])
    changed = change(raw)
    assert changed != raw
    document["records"][3] = seal(changed, WRITER).to_json()
    return document


@forgery("format")
def hash_of_the_wrong_length_in_a_record() -> Document:
    return edit(twin(), 3, lambda p: p.update(prev=p["prev"][:-2]))


@forgery("format")
def hash_in_capitals_in_a_record() -> Document:
    return edit(twin(), 3, lambda p: p.update(prev=p["prev"].upper()))


@forgery("format")
def hash_of_the_wrong_length_in_a_proof() -> Document:
    return edit_proofs(twin(), lambda text: text.replace("\n\n", "\nAAAA\n\n", 1))


@forgery("format")
def hash_of_the_wrong_length_in_a_consistency_proof() -> Document:
    document = parsed(_two_checkpoints())
    document["consistency"][0]["hashes"][0] = format_base64(bytes(31))
    return document


@forgery("format")
def hash_of_the_wrong_length_in_the_head() -> Document:
    document = twin()
    statement = payload_of(document["head"])
    statement["predicate"]["last"] += "00"
    put_payload(document["head"], statement)
    return document


def _odd_numbers() -> None:
    for label, number in {
        "leading_zero": "0{}",
        "minus": "-{}",
        "plus": "+{}",
        "underscore": "{}_0",
        "arabic": "٤",
        "wide": "４",
        "space": " {}",
        "fraction": "{}.0",
        "exponent": "{}e0",
        "hex": "0x{}",
        "empty": "",
        "huge": "{}" + "0" * 19,
    }.items():

        def size(number: str = number) -> Document:
            document = twin()
            old = parse_proof(document["proofs"][0]).checkpoint.size
            return edit_proofs(document, lambda text: text.replace(f"\n{old}\n", f"\n{number.format(old)}\n"))

        def index(number: str = number) -> Document:
            return edit_proofs(twin(), lambda text: text.replace("index ", f"index {number.format('')}", 1))

        size.__name__ = f"tree_size_written_with_{label}"
        forgery("format")(size)
        if label not in ("space", "empty"):
            index.__name__ = f"leaf_index_written_with_{label}"
            forgery("format")(index)

    for label, text in {"leading_zero": "03", "minus": "-3", "underscore": "0_3", "arabic": "٣"}.items():

        def consistency(text: str = text) -> Document:
            document = parsed(_two_checkpoints())
            document["consistency"][0]["old"] = text
            return document

        consistency.__name__ = f"consistency_size_written_with_{label}"
        forgery("format")(consistency)


_odd_numbers()


@forgery("format")
def base64_with_stray_bits() -> Document:
    document = twin()
    for envelope in document["records"]:
        signature = envelope["signatures"][0]
        signature["sig"] = signature["sig"][:-3] + chr(ord(signature["sig"][-3]) + 1) + "=="
    return document


@forgery("format")
def base64_of_the_url_kind() -> Document:
    document = twin()
    for envelope in document["records"]:
        signature = envelope["signatures"][0]
        signature["sig"] = signature["sig"].replace("+", "-").replace("/", "_")
    return document


@forgery("format")
def unknown_kind() -> Document:
    return edit(twin(), 5, lambda p: p.update(kind="blessed"))


@forgery("format")
def head_in_place_of_a_record() -> Document:
    document = twin()
    document["records"][4] = document["head"]
    return document


@forgery("format")
def record_in_place_of_the_head() -> Document:
    document = twin()
    document["head"] = document["records"][4]
    return document


@forgery("format")
def payload_type_changed() -> Document:
    document = twin()
    document["records"][0]["payloadType"] = "application/json"
    return document


@forgery("format")
def newer_receipt_type() -> Document:
    return {**twin(), "type": "urn:interlock-tools:receipt:v2"}


@forgery("format")
def no_records() -> Document:
    return {**twin(), "records": [], "proofs": []}


@forgery("format")
def fewer_proofs_than_records() -> Document:
    document = twin()
    document["proofs"].pop()
    return document


@forgery("format")
def bytes_after_the_end() -> bytes:
    return json.dumps(twin()).encode() + b"{}"


@forgery("format")
def byte_order_mark() -> bytes:
    return b"\xef\xbb\xbf" + json.dumps(twin()).encode()


@forgery("format")
def lone_surrogate() -> bytes:
    document = twin()
    document["records"][0]["signatures"][0]["keyid"] = "\ud800"
    return json.dumps(document).encode()


@forgery("format")
def nested_without_end() -> bytes:
    return b'{"type":' + b"[" * 100_000


@forgery("format")
def truth_in_place_of_a_number() -> Document:
    return edit(twin(), 3, lambda p: p["body"].update(send=True))


@forgery("format")
def body_without_what_its_kind_needs() -> Document:
    return edit(twin(), 4, lambda p: p["body"].pop("evidence"))


# -- the operator, who holds the writer's key ------------------------------------------------------


@forgery("log", Answer.NOT_CHECKED)
def whole_chain_rebuilt_and_signed() -> Document:
    return rehash(without_proofs(flip_to_refused(twin())), WRITER)


@forgery("log")
def whole_chain_rebuilt_with_the_old_proofs() -> Document:
    return rehash(flip_to_refused(twin()), WRITER)


@forgery("log")
def tail_cut_and_head_signed_with_a_proof_left_over() -> Document:
    document = twin()
    del document["records"][-1], document["proofs"][-2]
    return rehash(document, WRITER)


@forgery("witnesses", Answer.NOT_CHECKED)
def whole_chain_rebuilt_in_a_new_log() -> Document:
    return reproved(rehash(flip_to_refused(twin()), WRITER))


@forgery("witnesses")
def whole_chain_rebuilt_in_a_new_log_with_the_old_cosignatures() -> Document:
    old = parse_proof(twin()["proofs"][0]).note
    lines = [line for line in old.signatures if line.name != LOG.name]

    def decorated(text: str) -> str:
        proof = parse_proof(text)
        return str(replace(proof, note=proof.note.with_signatures(lines)))

    return edit_proofs(reproved(rehash(flip_to_refused(twin()), WRITER)), decorated)


@forgery("log")
def log_of_the_same_name_under_another_key() -> Document:
    return reproved(rehash(twin(), WRITER), NEXT_LOG, BOTH)


@forgery("log")
def log_of_another_name() -> Document:
    return reproved(rehash(twin(), WRITER), KeySigner("log.example/other", b"l" * 32), BOTH)


@forgery("history")
def two_histories_of_one_size() -> Document:
    """The first records in the log that was witnessed, the last in a second log of the same size."""
    document, other = twin(), issued(STORIES["settled"], STORIES["refused"][:1], [proposed("x")])
    document["proofs"][0] = other["proofs"][0]
    return document


@forgery("history")
def two_histories_of_different_sizes() -> Document:
    book, (effect,) = book_of(STORIES["settled"][:3])
    book.checkpoint(BOTH)
    book.go_on(effect, STORIES["settled"][3:])
    document = parsed(book.receipt(effect))
    other, _ = book_of([proposed("hidden")])
    positions: list[int | None] = [other.grow(sealed.hash) for sealed in book.records[effect][3:]]
    other.checkpoint(BOTH)
    other.write(STORIES["refused"])
    book.write(STORIES["refused"])
    proofs = prove(positions, other.notes, other.read)
    document["proofs"][3:] = [str(proof) for proof in proofs]
    first = parse_proof(document["proofs"][0])
    document["consistency"] = [item.to_json() for item in connect([first, *proofs], book.read)]
    return document


@forgery("history")
def records_in_two_logs() -> Document:
    document = twin()
    other = KeySigner("log.example/second", b"2" * 32)
    document["proofs"][4] = reproved(twin(), other, BOTH)["proofs"][4]
    return document


@forgery("log")
def records_logged_out_of_order() -> Document:
    book, (effect,) = book_of(STORIES["settled"])
    records = book.records[effect]
    other = Book(WRITER, LOG)
    places = {number: other.grow(records[number].hash) for number in (0, 2, 1, 3, 4)}
    other.checkpoint(BOTH)
    proofs = prove([places[number] for number in range(5)], other.notes, other.read)
    return parsed(build_receipt([record.envelope for record in records], WRITER, START_MS, proofs=proofs))


def _told(story: Story) -> Document:
    return issued(story)


@forgery("identity")
def effect_id_that_nothing_leads_to() -> Document:
    book = Book(WRITER, LOG)
    effect = book.go_on("f" * 32, STORIES["settled"])
    book.checkpoint(BOTH)
    return parsed(book.receipt(effect))


@forgery("identity")
def decision_number_edited() -> Document:
    return reproved(rehash(edit(twin(), 1, lambda p: p["body"].update(decision=2)), WRITER), LOG, BOTH)


@forgery("identity")
def request_key_edited() -> Document:
    return reproved(rehash(edit(twin(), 1, lambda p: p["body"].update(key="another case")), WRITER), LOG, BOTH)


@forgery("digests")
def payload_edited_under_its_digest() -> Document:
    document = edit(twin(), 1, lambda p: p["body"]["payload"].update(amount=100))
    return reproved(rehash(document, WRITER), LOG, BOTH)


@forgery("protocol")
def committed_without_a_send() -> Document:
    return _told([*STORIES["committed"][:2], STORIES["committed"][3]])


@forgery("protocol")
def committed_twice() -> Document:
    return _told([*STORIES["committed"], STORIES["committed"][3]])


@forgery("protocol")
def refused_while_a_send_may_have_landed() -> Document:
    return _told([*STORIES["committed"][:3], (Kind.REFUSED, {"reason": "stale_premise"})])


@forgery("protocol")
def settled_before_it_was_committed() -> Document:
    return _told([*STORIES["committed"][:3], (Kind.SETTLED, {"state": "settled"})])


@forgery("chain")
def sequence_number_left_out() -> Document:
    book = Book(WRITER, LOG)
    effect = book.write(STORIES["committed"][:3])
    kind, body = STORIES["committed"][3]
    book.append(Entry(effect, 5, kind, START_MS, body))
    book.checkpoint(BOTH)
    return parsed(book.receipt(effect))


# -- honest records of what should not have been done ---------------------------------------------


@forgery("at_most_once")
def sent_again_while_the_first_might_land() -> Document:
    story = [entry for entry in STORIES["sent_again"] if entry[0] is not Kind.NOT_LANDED]
    return _told(story)


@forgery("allowed_when_sent")
def grant_for_less() -> Document:
    return _told(_with_grant(grant(max_amount=1999)))


@forgery("allowed_when_sent")
def grant_that_had_ended() -> Document:
    return _told(_with_grant(grant(expires_at_ms=START_MS + 2999)))


@forgery("allowed_when_sent")
def grant_for_another_payload() -> Document:
    return _told(_with_grant(grant(payload_digest=digest(canonical({"amount": 1})))))


def _with_grant(given: Document) -> Story:
    story = list(STORIES["committed"])
    story[1] = (Kind.AUTHORIZED, {"grant": given})
    return story


@forgery("protocol")
def sent_before_it_was_approved() -> Document:
    story = list(STORIES["approved"])
    del story[2]
    return _told(story)


@forgery("protocol")
def sent_after_it_was_rejected() -> Document:
    story = list(STORIES["approved"])
    story[2] = (Kind.REJECTED, {"digest": "d1", "by": "dana", "why": "no"})
    return _told(story)


@forgery("protocol")
def approval_of_something_else() -> Document:
    story = list(STORIES["approved"])
    story[2] = (Kind.APPROVED, {"digest": "d2", "by": "dana", "why": "fine"})
    return _told(story)


@forgery("allowed_when_sent")
def approval_of_another_payload() -> Document:
    story = list(STORIES["approved"])
    for index in (1, 2):
        kind, body = story[index]
        story[index] = (kind, {**body, "digest": digest(canonical({"amount": 1}))})
    return _told(story)


@forgery("allowed_when_sent")
def approval_that_had_ended() -> Document:
    story = list(STORIES["approved"])
    kind, body = story[1]
    story[1] = (kind, {**body, "expires_at_ms": START_MS + 4500})
    return _told(story)


@forgery("premises_held_when_sent")
def premises_that_had_changed() -> Document:
    story = list(STORIES["sent_again"])
    story[5] = dispatched(2, facts={**FACTS, "refunded_by_others": 500})
    return _told(story)


@forgery("premises_held_when_sent")
def premise_that_was_true_not_one() -> Document:
    story = list(STORIES["sent_again"])
    story[5] = dispatched(2, facts={**FACTS, "refunded_by_others": False})
    return _told(story)


@forgery("rechecked_at_recovery")
def sent_again_without_reading_again() -> Document:
    story = list(STORIES["sent_again"])
    body = {"send": 2, "session": "s2", "mark": None, "clock": clock(9000)}
    story[5] = (Kind.DISPATCHED, body)
    return _told(story)


# -- keys ------------------------------------------------------------------------------------------


def _rotated(*changes: tuple[KeyChange, Signer], late: Signer = NEXT_WRITER) -> Document:
    book, (effect,) = book_of(STORIES["settled"][:3])
    for change, signer in changes:
        book.change_key(change, signer)
    book.writer = late
    book.go_on(effect, STORIES["settled"][3:])
    book.checkpoint(BOTH)
    return parsed(book.receipt(effect))


ADD = KeyChange("add", "writer", verifier_key(NEXT_WRITER), START_MS)
RETIRE = KeyChange("retire", "writer", verifier_key(WRITER), START_MS)


@forgery("writer")
def key_that_adds_itself() -> Document:
    return _rotated((ADD, NEXT_WRITER))


@forgery("writer")
def retired_key_still_signing() -> Document:
    return _rotated((ADD, WRITER), (RETIRE, WRITER), late=WRITER)


@forgery("writer")
def key_used_before_it_was_added() -> Document:
    book, (effect,) = book_of(STORIES["settled"][:3])
    book.writer = NEXT_WRITER
    book.go_on(effect, STORIES["settled"][3:])
    book.change_key(ADD, WRITER)
    book.checkpoint(BOTH)
    return parsed(book.receipt(effect))


@forgery("writer")
def key_change_of_another_key() -> Document:
    document = _rotated((ADD, WRITER))
    raw = base64.b64decode(document["keys"][0]["record"]["payload"])
    change = replace(KeyChange.parse(raw), key=verifier_key(MALLORY))
    put_payload(document["keys"][0]["record"], change.payload())
    return document


def _moved(*signers: Signer) -> Document:
    book, (effect,) = book_of(STORIES["settled"][:3])
    book.change_key(KeyChange("add", "log", verifier_key(NEXT_LOG), START_MS), WRITER)
    book.log = signers[0]
    book.checkpoint(BOTH, START_MS // 1000, *signers[1:])
    book.go_on(effect, STORIES["settled"][3:])
    book.log = NEXT_LOG
    book.checkpoint(BOTH)
    return parsed(book.receipt(effect))


@forgery("log")
def log_moved_by_its_new_key_alone() -> Document:
    return _moved(NEXT_LOG)


@forgery("writer")
def log_moved_by_its_old_key_alone() -> Document:
    return _moved(LOG)


# -- private values --------------------------------------------------------------------------------

_PRIVATE = (("payload", "payment_intent"), ("facts", "refunded_by_others"))


def _private(disclosing: bool = True) -> Document:
    book = Book(WRITER, LOG, _PRIVATE)
    effect = book.write(STORIES["settled"])
    book.checkpoint(BOTH)
    return parsed(book.receipt(effect, disclosing=_PRIVATE if disclosing else ()))


@forgery("disclosures")
def disclosed_value_edited() -> Document:
    document = _private()
    document["disclosures"][0]["value"] = "pi_other"
    return document


@forgery("disclosures")
def disclosed_salt_edited() -> Document:
    document = _private()
    document["disclosures"][0]["salt"] = format_base64(bytes(16))
    return document


@forgery("disclosures")
def value_disclosed_where_nothing_is_hidden() -> Document:
    document = _private()
    document["disclosures"][0]["path"] = ["payload", "amount"]
    return document


@forgery("disclosures")
def value_disclosed_for_a_record_that_is_not_here() -> Document:
    document = _private()
    document["disclosures"][0]["seq"] = 77
    return document


class Forgeries(unittest.TestCase):
    """Every forgery beside its twin."""

    TWINS: ClassVar[dict[str, Callable[[], tuple[Document, Policy]]]] = {
        "entry_edited_in_an_unsigned_receipt": lambda: (issued(STORIES["settled"], writer=None), UNSIGNED),
        "outcome_flipped_and_rehashed": lambda: (without_proofs(issued(STORIES["committed"], writer=None)), UNSIGNED),
        "sent_again_while_the_first_might_land": lambda: (issued(STORIES["sent_again"]), POLICY),
        "premises_that_had_changed": lambda: (issued(STORIES["sent_again"]), POLICY),
        "premise_that_was_true_not_one": lambda: (issued(STORIES["sent_again"]), POLICY),
        "sent_again_without_reading_again": lambda: (issued(STORIES["sent_again"]), POLICY),
        "sent_before_it_was_approved": lambda: (issued(STORIES["approved"]), POLICY),
        "sent_after_it_was_rejected": lambda: (issued(STORIES["approved"]), POLICY),
        "approval_of_something_else": lambda: (issued(STORIES["approved"]), POLICY),
        "approval_of_another_payload": lambda: (issued(STORIES["approved"]), POLICY),
        "approval_that_had_ended": lambda: (issued(STORIES["approved"]), POLICY),
        "key_that_adds_itself": lambda: (_rotated((ADD, WRITER)), POLICY),
        "retired_key_still_signing": lambda: (_rotated((ADD, WRITER), (RETIRE, WRITER)), POLICY),
        "key_used_before_it_was_added": lambda: (_rotated((ADD, WRITER)), POLICY),
        "key_change_of_another_key": lambda: (_rotated((ADD, WRITER)), POLICY),
        "log_moved_by_its_new_key_alone": lambda: (_moved(LOG, NEXT_LOG), POLICY),
        "log_moved_by_its_old_key_alone": lambda: (_moved(LOG, NEXT_LOG), POLICY),
        "checkpoint_rolled_back": lambda: (parsed(_two_checkpoints()), POLICY),
        "consistency_left_out": lambda: (parsed(_two_checkpoints()), POLICY),
        "consistency_of_another_tree": lambda: (parsed(_two_checkpoints()), POLICY),
        "two_histories_of_different_sizes": lambda: (parsed(_two_checkpoints()), POLICY),
        "hash_of_the_wrong_length_in_a_consistency_proof": lambda: (parsed(_two_checkpoints()), POLICY),
        **{
            name: lambda: (_private(), POLICY)
            for name in (
                "disclosed_value_edited",
                "disclosed_salt_edited",
                "value_disclosed_where_nothing_is_hidden",
                "value_disclosed_for_a_record_that_is_not_here",
            )
        },
        **{
            name: lambda: (parsed(_two_checkpoints()), POLICY)
            for name in FORGERIES
            if name.startswith("consistency_size")
        },
    }

    def test_there_are_enough(self) -> None:
        self.assertGreaterEqual(len(FORGERIES), 40)
        self.assertLessEqual(self.TWINS.keys(), FORGERIES.keys())

    def test_every_forgery_fails_where_it_says(self) -> None:
        for name, (line, says, make) in FORGERIES.items():
            with self.subTest(name):
                genuine, policy = self.TWINS.get(name, lambda: (twin(), POLICY))()
                self._check_twin(genuine, policy, line)
                forged = make()
                self.assertNotEqual(forged, genuine)
                report = verify(forged, policy)
                self.assertEqual(report.line(line).answer, says, str(report))
                self.assertIn(report.exit_code, (1,) if says is Answer.NO else (1, 2))
                if says is Answer.NO:
                    self.assertIn(line, report.failed)
                if report.exit_code == 1 and line not in ("at_most_once",) and report.word is Word.INVALID:
                    self.assertTrue(all(claim.answer is Answer.UNKNOWN for claim in report.claims))

    def _check_twin(self, genuine: Document, policy: Policy, line: str) -> None:
        report = verify(genuine, policy)
        self.assertEqual(report.failed, (), str(report))
        self.assertEqual(report.exit_code, 0 if policy is POLICY else 2, str(report))
        self.assertEqual(report.word, Word.WITNESSED if policy is POLICY else Word.CONSISTENT)
        positive = (Answer.YES, Answer.RECORDED, Answer.NOT_APPLICABLE)
        self.assertIn(report.line(line).answer, positive)

    def test_below_the_policy_says_so_and_claims_no_more(self) -> None:
        for name, word in {
            "story_flipped_and_signatures_stripped": Word.CONSISTENT,
            "whole_chain_rebuilt_and_signed": Word.SIGNED,
            "whole_chain_rebuilt_in_a_new_log": Word.LOGGED,
        }.items():
            report = verify(FORGERIES[name][2](), POLICY)
            self.assertEqual((report.word, report.exit_code), (word, 2))
            self.assertNotIn("tamper-evident", str(report))

    def test_dangerous_keys_never_reach_the_verifier(self) -> None:
        """A small-order witness key "signs" everything: such a policy is refused when it is loaded."""
        weak = (1).to_bytes(32, "little")
        hint = key_id("w", COSIGNATURE, weak).hex()
        text = f"witness w w+{hint}+{format_base64(bytes([COSIGNATURE]) + weak)}\nquorum w\n"
        self.assertEqual(parse_policy(POLICY_TEXT), POLICY)
        with self.assertRaisesRegex(PolicyError, "small order"):
            parse_policy(POLICY_TEXT.split("witness")[0] + text)


class NotForgeries(unittest.TestCase):
    """What cannot be told from the file alone, and what is said of it instead."""

    def test_an_older_receipt_is_an_older_receipt(self) -> None:
        book, (effect,) = book_of(STORIES["settled"][:3])
        book.checkpoint(BOTH)
        older = verify(book.receipt(effect), POLICY)
        book.go_on(effect, STORIES["settled"][3:])
        book.checkpoint(BOTH)
        newer = verify(book.receipt(effect), POLICY)
        self.assertEqual((older.exit_code, newer.exit_code), (0, 0))
        self.assertEqual(older.line("happened").answer, Answer.UNKNOWN)
        self.assertEqual(older.line("happened").not_checked, "what was recorded afterwards")
        self.assertEqual(newer.line("happened").answer, Answer.YES)

    def test_records_keep_their_shape(self) -> None:
        """A record and its envelope are read back to the same bytes."""
        for envelope in twin()["records"]:
            sealed = Envelope.from_json(envelope)
            record = Record.parse(sealed.payload)
            self.assertEqual(record.payload(), sealed.payload)
            self.assertEqual(record.payload(canonical(record.entry.body)), sealed.payload)
            self.assertEqual(rfc8785.dumps(json.loads(sealed.payload)), sealed.payload)
        self.assertEqual(EVIDENCE["id"], payload_of(twin()["records"][3])["predicate"]["body"]["evidence"]["id"])


if __name__ == "__main__":
    unittest.main()
