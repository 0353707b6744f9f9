"""The verifier: bytes and a policy in, a report out.

1.  Read the file strictly: known members only, one spelling of everything, no
    repeated keys. Each record is an in-toto Statement in RFC 8785 bytes whose
    body holds what its kind needs.
2.  All records are of one effect, and its id is the one that its name, request
    key and decision number lead to.
3.  Records are numbered from 1, and each names the hash of the one before it.
4.  What is disclosed of private values is what was hidden.
5.  Fold the entries with the core's ``step``: every one may follow the one before.
6.  Digests of the payload are those of the payload.
7.  The head says how many records there are, and which is the last.
8.  Every record and the head is signed by a writer key that the policy names or
    leads to, valid at that place of the log. Of records that were committed
    together the last is signed: those before it say so, and its hash leads to them.
9.  Every record is in the log, in order, under a checkpoint signed by a log key
    that the policy names or leads to.
10. All checkpoints are of one history: each extends the one before.
11. Every checkpoint was cosigned by the witnesses that the policy asks for.
12. Grade: the highest word of which every condition holds.
13. Tell what the records mean, from the records alone.
14. Add what the service answered, where it was asked.

Nothing here reads a clock, a file or a socket, and no key comes from the receipt.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from interlock_tools.core.canonical import digest, effect_id, encode
from interlock_tools.core.entries import Entry, Kind
from interlock_tools.core.states import IllegalTransition, State, step

from .bodies import check_body
from .checkpoint import cosigned_at
from .claims import Story, moment, nothing_claimed, show, tell
from .errors import FormatError, VerificationError
from .file import Opened, open_receipt
from .keyring import Keyring
from .merkle import verify_consistency
from .policy import Policy
from .private import has_hidden, is_hidden, reveal
from .proof import Proof
from .report import Answer, Line, Report, ServiceFinding, Subject, Word

CHECKS = (
    "format",
    "identity",
    "chain",
    "disclosures",
    "protocol",
    "digests",
    "complete",
    "writer",
    "log",
    "history",
    "witnesses",
    "service",
)
"""The checks, in the order in which they are reported."""


def verify(receipt: bytes | dict[str, Any], policy: Policy, service: ServiceFinding | None = None) -> Report:
    """Verify a receipt.

    Args:
        receipt: the bytes of a receipt file, or what they parse to.
        policy: whom to trust; the verifier's own, see ``parse_policy``.
        service: what the service answered, where it was asked.

    Raises:
        VerificationError: the policy is not a policy, or the verifier itself
            failed. A receipt that is wrong in any way is answered with a report.
    """
    if not isinstance(policy, Policy):
        raise VerificationError("the policy must come from parse_policy(…); trust is never taken from a receipt")
    try:
        report = _verify(receipt, policy)
    except Exception as error:
        raise VerificationError(f"the verifier failed ({type(error).__name__}); nothing can be said") from error
    return report if service is None else report.with_service(service)


def required_by(policy: Policy) -> Word:
    """Return the least that a policy asks for: what it names keys for."""
    if policy.quorum is not None:
        return Word.WITNESSED
    return Word.LOGGED if policy.logs else Word.SIGNED


def _verify(receipt: bytes | dict[str, Any], policy: Policy) -> Report:
    lines: dict[str, Line] = {}

    def check(name: str, answer: Answer, says: str, vouched_by: str = "", not_checked: str = "") -> None:
        lines[name] = Line(name, answer, says, vouched_by, not_checked)

    # (1) Read the file strictly.
    try:
        opened = open_receipt(receipt)
    except FormatError as error:
        check("format", Answer.NO, _sentence(str(error)))
        return _report(lines, policy, None, None)
    check("format", Answer.YES, f"{len(opened.records)} records, in the one form that they may have.")

    entries = [record.entry for record in opened.records]
    # (2) One effect, whose id is what its name, request key and decision lead to.
    check("identity", *_identity(entries, opened))
    # (3) Numbered from 1, each with the hash of the one before.
    check("chain", *_chain(opened))
    # (4) What is disclosed is what was hidden.
    entries, answer, says = _disclosed(entries, opened)
    check("disclosures", answer, says)
    # (5) Fold: every entry may follow the one before.
    states, problem = _fold(entries)
    check("protocol", Answer.NO if problem else Answer.YES, problem or f"{len(entries)} legal steps.")
    # (6) Digests of the payload.
    check("digests", *_digests(entries))
    # (7) The head.
    check("complete", *_complete(opened))

    # (8) Signed by trusted writers.
    keyring = Keyring(policy, opened)
    writers, (answer, says) = _writers(keyring, policy, opened)
    check("writer", answer, says, ", ".join(writers), _UNSIGNED if answer is Answer.NOT_CHECKED else "")
    # (9) In a trusted log, in order.
    check("log", *_log(keyring, policy, opened))
    # (10) Of one history.
    check("history", *_history(opened))
    # (11) Seen by the witnesses.
    seen, (answer, says) = _witnesses(policy, opened)
    check("witnesses", answer, says, "", "that the witnesses are independent of the operator")
    check("service", Answer.NOT_CHECKED, "The service was not asked.")
    story = Story(entries, states, "", seen) if not problem else None
    return _report(lines, policy, story, _subject(opened, entries, states), writers)


def _report(
    lines: dict[str, Line], policy: Policy, story: Story | None, subject: Subject | None, writers: tuple[str, ...] = ()
) -> Report:
    for name in CHECKS:
        lines.setdefault(name, Line(name, Answer.NOT_CHECKED, "The receipt could not be read."))
    checks = tuple(lines[name] for name in CHECKS)

    # (12) Grade.
    def all_yes(*names: str) -> bool:
        return all(lines[name].answer is Answer.YES for name in names)

    if any(line.answer is Answer.NO for line in checks):
        word = Word.INVALID
    elif not all_yes("writer"):
        word = Word.CONSISTENT
    elif not all_yes("log", "history"):
        word = Word.SIGNED
    else:
        word = Word.WITNESSED if all_yes("witnesses") else Word.LOGGED

    # (13) Tell what the records mean; nothing, where a check failed.
    if word is Word.INVALID or story is None:
        claims = nothing_claimed("A check failed.")
    else:
        claims = tell(replace(story, voucher=_voucher(word, writers)))
    return Report(word, required_by(policy), checks, claims, subject)


def _voucher(word: Word, writers: tuple[str, ...]) -> str:
    if word is Word.CONSISTENT:
        return "nobody who could be checked"
    held = {Word.LOGGED: ", bound by its log", Word.WITNESSED: ", bound by the log that witnesses saw"}.get(word, "")
    return f"the writer {', '.join(writers)}{held}"


_UNSIGNED = "who wrote these records"
_Answered = tuple[Answer, str]


def _sentence(words: str) -> str:
    shown = show(words, 300)
    return f"{shown[:1].upper()}{shown[1:]}."


def _identity(entries: list[Entry], opened: Opened) -> _Answered:
    ids = {entry.effect_id for entry in entries} | {opened.head.effect_id}
    if len(ids) > 1:
        return Answer.NO, "The receipt holds records of more than one effect."
    first = entries[0]
    if first.kind is not Kind.PROPOSED:
        return Answer.NO, "The first record is not a decision, so the effect's id cannot be derived."
    body = first.body
    if effect_id(body["effect"], body["key"], body["decision"]) != first.effect_id:
        return Answer.NO, "The effect's id is not the one that its name, request key and decision number lead to."
    return Answer.YES, f"Effect {first.effect_id}, derived from name, request key and decision number."


def _chain(opened: Opened) -> _Answered:
    expected = None
    for number, (item, record) in enumerate(zip(opened.items, opened.records, strict=True), 1):
        if record.entry.seq != number:
            return Answer.NO, f"Record {number} says that it is number {record.entry.seq}."
        if record.prev != expected:
            return Answer.NO, f"Record {number} does not name the hash of the record before it."
        expected = item.hash.hex()
    return Answer.YES, f"Records 1 to {len(opened.items)}, each naming the hash of the one before."


def _disclosed(entries: list[Entry], opened: Opened) -> tuple[list[Entry], Answer, str]:
    hidden = any(has_hidden(entry.body) for entry in entries)
    if not opened.disclosures:
        says = "Private values are hidden, and none is disclosed." if hidden else "There are no private values."
        return entries, Answer.NOT_CHECKED if hidden else Answer.NOT_APPLICABLE, says
    shown = list(entries)
    try:
        for disclosure in opened.disclosures:
            if not 1 <= disclosure.seq <= len(shown):
                raise FormatError(f"a value is disclosed for record {disclosure.seq}, which is not here")
            entry = shown[disclosure.seq - 1]
            shown[disclosure.seq - 1] = replace(entry, body=reveal(entry.body, disclosure))
            check_body(entry.kind, shown[disclosure.seq - 1].body)
    except FormatError as error:
        return entries, Answer.NO, _sentence(str(error))
    return shown, Answer.YES, f"{len(opened.disclosures)} disclosed values are the ones that were hidden."


def _fold(entries: list[Entry]) -> tuple[list[State], str]:
    states = [State()]
    for entry in entries:
        try:
            states.append(step(states[-1], entry))
        except IllegalTransition as error:
            return states, f"Record {entry.seq}: {error}."
    return states, ""


def _digests(entries: list[Entry]) -> _Answered:
    open_ = False
    for entry in entries:
        if entry.kind is not Kind.PROPOSED:
            continue
        written, payload = entry.body["payload_digest"], entry.body["payload"]
        if is_hidden(written) or has_hidden(payload):
            open_ = True
        elif digest(encode(payload)) != written:
            return Answer.NO, "The payload's digest is not that of the payload."
    if open_:
        return Answer.NOT_CHECKED, "The payload holds private values."
    return Answer.YES, "The payload's digest is that of the payload."


def _complete(opened: Opened) -> _Answered:
    head = opened.head
    if head.records != len(opened.records):
        return Answer.NO, f"The receipt was issued with {head.records} records and holds {len(opened.records)}."
    if head.last != opened.items[-1].hash.hex():
        return Answer.NO, "The last record is not the one with which the receipt was issued."
    return Answer.YES, f"All {head.records} records that there were when it was issued, {moment(head.issued_at_ms)}."


def _writers(keyring: Keyring, policy: Policy, opened: Opened) -> tuple[tuple[str, ...], _Answered]:
    envelopes = [*(item.envelope for item in opened.items), opened.head_envelope]
    if not any(envelope.signatures for envelope in envelopes):
        return (), (Answer.NOT_CHECKED, "Nothing is signed.")
    if not policy.writers:
        return (), (Answer.NOT_CHECKED, "The policy names no writer, so no signature can be checked.")
    if keyring.problems:
        return (), (Answer.NO, _sentence(keyring.problems[0]))
    names: dict[str, None] = {}
    unsigned, together = [], ""
    for number, (item, envelope) in enumerate(zip([*opened.items, None], envelopes, strict=True), 1):
        what = "The receipt's head" if item is None else f"Record {number}"
        key = keyring.signer_of(envelope, item.position if item is not None else None)
        covered_by = opened.records[number - 1].covered_by if item is not None else None
        if covered_by is not None:
            if problem := _covered(opened, number, covered_by):
                return (), (Answer.NO, problem)
            together = " Those that were written together share a signature."
        elif key is not None:
            names[key.name] = None
        elif envelope.signatures:
            return (), (Answer.NO, f"{what} is not signed by a writer that is trusted at its place.")
        else:
            unsigned.append(what)
    if unsigned:
        return (), (Answer.NOT_CHECKED, f"{unsigned[0]} is not signed ({len(unsigned)} are not).")
    says = f"All records and the head are signed by {show(', '.join(names))}.{together}"
    return tuple(names), (Answer.YES, says)


def _covered(opened: Opened, number: int, by: int) -> str:
    """Why another record's signature does not cover this one; empty if it does. The chain leads from there to here."""
    if opened.items[number - 1].envelope.signatures:
        return f"Record {number} has a signature of its own, though it says that record {by} covers it."
    if by > len(opened.records) or opened.records[by - 1].covered_by is not None:
        return f"Record {number} says that record {by} covers it, which is not here or has no signature of its own."
    return ""


def _log(keyring: Keyring, policy: Policy, opened: Opened) -> _Answered:
    for item in opened.logged:
        if item.proof is not None and not item.proof.includes(item.hash):
            return Answer.NO, f"Leaf {item.proof.index} of the log is not what the proof is given for."
    positions = [item.position for item in opened.items if item.position is not None]
    if any(later <= earlier for earlier, later in pairwise(positions)):
        return Answer.NO, "The log does not hold the records in their order."
    if not opened.logged:
        return Answer.NOT_CHECKED, "No checkpoint covers these records yet."
    if not policy.logs:
        return Answer.NOT_CHECKED, "The policy names no log, so no checkpoint can be checked."
    try:
        for proof in _proofs(opened):
            if keyring.log_key_of(proof) is None:
                return Answer.NO, f"A checkpoint of {show(proof.checkpoint.origin, 80)} is not signed by a trusted log."
    except FormatError as error:
        return Answer.NO, _sentence(str(error))
    missing = [number for number, item in enumerate(opened.items, 1) if item.proof is None]
    if missing:
        return Answer.NOT_CHECKED, f"Records {', '.join(map(str, missing))} are in no checkpoint yet."
    return Answer.YES, f"All records are in the log {show(_proofs(opened)[0].checkpoint.origin, 80)}, in their order."


def _proofs(opened: Opened) -> list[Proof]:
    """One proof for each distinct checkpoint note."""
    return list({str(item.proof.note): item.proof for item in opened.logged if item.proof is not None}.values())


def _history(opened: Opened) -> _Answered:
    points = [proof.checkpoint for proof in _proofs(opened)]
    if not points:
        return Answer.NOT_CHECKED, "There is no checkpoint."
    if len({point.origin for point in points}) > 1:
        return Answer.NO, "The checkpoints are of different logs."
    roots: dict[int, bytes] = {}
    for point in points:
        if roots.setdefault(point.size, point.root) != point.root:
            return Answer.NO, f"Two checkpoints of {point.size} records have different roots: two histories."
    known = {(item.old, item.new): item.hashes for item in opened.consistency}
    if len(known) != len(opened.consistency):
        return Answer.NO, "Two consistency proofs are given for the same two sizes."
    sizes = sorted(roots)
    for old, new in pairwise(sizes):
        hashes = known.pop((old, new), None)
        if hashes is None or not verify_consistency(old, new, roots[old], roots[new], hashes):
            return Answer.NO, f"The log of {new} records is not shown to extend the log of {old}."
    if known:
        return Answer.NO, "A consistency proof is for checkpoints that are not here."
    return Answer.YES, f"{len(sizes)} checkpoint{'s' if len(sizes) > 1 else ''} of one history, up to size {sizes[-1]}."


def _witnesses(policy: Policy, opened: Opened) -> tuple[list[int | None], _Answered]:
    """When the quorum had seen each record, and the line about it."""
    times: dict[str, int | None] = {}
    names: dict[str, None] = {}
    seen: list[int | None] = [None] * len(opened.items)
    try:
        for proof in _proofs(opened):
            cosigned = {
                name: at for name, key in policy.witnesses.items() if (at := cosigned_at(proof.note, key)) is not None
            }
            names.update(dict.fromkeys(cosigned))
            times[str(proof.note)] = _when_met(policy, cosigned)
    except FormatError as error:
        return seen, (Answer.NO, _sentence(str(error)))
    seen = [times[str(item.proof.note)] if item.proof is not None else None for item in opened.items]
    if policy.quorum is None:
        return seen, (Answer.NOT_CHECKED, "The policy asks for no witness.")
    unseen = [number for number, at in enumerate(seen, 1) if at is None]
    if unseen:
        who = f"by {show(', '.join(names))} alone" if names else "by no witness"
        return seen, (Answer.NOT_CHECKED, f"Record {unseen[0]} was seen {who}, and the policy asks for more.")
    last = max(at for at in seen if at is not None)
    return seen, (Answer.YES, f"Seen by {show(', '.join(names))}, the last record by {moment(last * 1000)}.")


def _when_met(policy: Policy, cosigned: dict[str, int]) -> int | None:
    """The earliest time at which the witnesses that had signed by then satisfy the policy."""
    so_far: set[str] = set()
    for name, at in sorted(cosigned.items(), key=lambda pair: pair[1]):
        so_far.add(name)
        if policy.met_by(so_far):
            return at
    return None


def _subject(opened: Opened, entries: list[Entry], states: list[State]) -> Subject | None:
    final = states[-1]
    if not final.seq:
        return None
    committed = [entry for entry in entries if entry.kind is Kind.COMMITTED]
    return Subject(
        entries[0].effect_id,
        show(final.name),
        show(final.request_key),
        final.payload,
        dict(opened.records[0].service or {}),
        committed[-1].body["evidence"] if committed else None,
        final.phase.value,
    )
