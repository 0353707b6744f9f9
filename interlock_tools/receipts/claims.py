"""What records mean: the claims, derived from the records alone by the core's own state machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from interlock_tools.core.approval import approval_digest
from interlock_tools.core.canonical import encode
from interlock_tools.core.entries import Entry, Kind
from interlock_tools.core.states import Phase, State

from .private import has_hidden, is_hidden
from .report import Answer, Line

NAMES = (
    "happened",
    "at_most_once",
    "allowed_when_sent",
    "premises_held_when_sent",
    "rechecked_at_recovery",
    "evidence",
    "since",
    "decided_by",
)
"""The claims, in the order in which they are reported."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Story:
    """An effect's entries, and its state before the first and after each.

    Attributes:
        entries: in order, with disclosed values in place.
        states: ``states[n]`` is the state after n entries.
        voucher: who stands behind the records, in words.
        seen: per entry when the witnesses had seen it (UTC seconds), None where they had not.
    """

    entries: Sequence[Entry]
    states: Sequence[State]
    voucher: str
    seen: Sequence[int | None]

    @property
    def final(self) -> State:
        """The state after the last entry."""
        return self.states[-1]

    @property
    def sends(self) -> list[tuple[Entry, State, State]]:
        """Each DISPATCHED entry with the state before and after it."""
        return [
            (entry, self.states[number], self.states[number + 1])
            for number, entry in enumerate(self.entries)
            if entry.kind is Kind.DISPATCHED
        ]

    def all_of(self, *kinds: Kind) -> list[Entry]:
        """The entries of some kinds."""
        return [entry for entry in self.entries if entry.kind in kinds]


def tell(story: Story) -> tuple[Line, ...]:
    """Return one line per claim, in the order of ``NAMES``."""
    about_sends = (_at_most_once, _allowed, _premises, _rechecked)
    lost = any(entry.body.get("reconstructed") for entry, _, _ in story.sends)
    return (
        _happened(story),
        *(_lost(name, story) if lost else claim(story) for name, claim in zip(NAMES[1:5], about_sends, strict=True)),
        _evidence(story),
        _since(story),
        _decided_by(story),
    )


def _lost(name: str, story: Story) -> Line:
    says = "The records of its sends were lost; they were made again from what the service shows."
    return Line(name, Answer.NOT_RECORDED, says, story.voucher, "everything before that")


def nothing_claimed(why: str) -> tuple[Line, ...]:
    """Return the claims of a receipt that cannot be relied on."""
    return tuple(Line(name, Answer.UNKNOWN, why, "nobody") for name in NAMES)


def show(value: Any, limit: int = 200) -> str:
    """Return a value from a receipt as text that cannot pass for the report's own: one line, printable, cut."""
    text = "(private)" if is_hidden(value) else value if type(value) is str else encode(value)
    plain = "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in text[: limit + 1])
    return plain if len(plain) <= limit else plain[:limit] + "…"


def moment(at_ms: int) -> str:
    """Return UTC milliseconds as text, or the number where it is no date."""
    try:
        return f"{_EPOCH + timedelta(milliseconds=at_ms):%Y-%m-%d %H:%M:%S}Z"
    except OverflowError:
        return f"{at_ms} ms"


# -- the claims ------------------------------------------------------------------------------------


def _happened(story: Story) -> Line:
    name, final, voucher = "happened", story.final, story.voucher
    closing = final.closing.body if final.closing is not None else {}
    after = _late_evidence(story, final.closing.seq if final.closing is not None else 0)
    if final.phase is Phase.COMMITTED:
        return Line(name, Answer.YES, "It happened, on the service's evidence.", f"{voucher}, quoting the service")
    if after:
        says = "It was closed as not done or undecided, and a result that says it happened came afterwards."
        return Line(name, Answer.UNKNOWN, says, voucher, "which of the two is right; ask the service")
    if final.phase is Phase.REFUSED:
        says = f"It did not happen: {show(closing.get('reason', ''))}."
        return Line(name, Answer.NO, says, voucher, "that nothing was done outside the gate")
    if final.phase is Phase.REPLACED:
        says = f"It did not happen; effect {show(closing.get('effect_id', ''))} took its place."
        return Line(name, Answer.NO, says, voucher, "what became of that one")
    if final.phase is Phase.RESOLVED:
        answer = Answer.YES if closing["landed"] else Answer.NO
        says = f"{show(closing['by'])} said that it {'happened' if closing['landed'] else 'did not happen'}: "
        return Line(name, answer, f"{says}{show(closing['why'])}", f"{voucher}, quoting {show(closing['by'])}")
    if final.phase is Phase.AMBIGUOUS:
        says = f"Nobody could tell ({show(closing.get('reason', ''))}), and nobody has decided yet."
        return Line(name, Answer.UNKNOWN, says, voucher, "the service")
    sent = "A request may be on its way" if final.maybe_landed else "No request was out"
    says = f"{sent} when the last record was written at {moment(story.entries[-1].at_ms)}."
    return Line(name, Answer.UNKNOWN, says, voucher, "what was recorded afterwards")


def _late_evidence(story: Story, after_seq: int = 0) -> list[Any]:
    """What came back after record ``after_seq``, too late to close the effect, and shows that it happened."""
    results = [entry.body.get("result") for entry in story.all_of(Kind.LATE) if entry.seq > after_seq]
    return [r.get("evidence") for r in results if type(r) is dict and r.get("ending") == "evidence"]


def _at_most_once(story: Story) -> Line:
    name, voucher = "at_most_once", story.voucher
    if not story.sends:
        return Line(name, Answer.YES, "Nothing was sent.", voucher, "that nothing was done outside the gate")
    relied = []
    for entry, before, _ in story.sends:
        earlier = [send.number for send in before.maybe_landed]
        if not earlier:
            continue
        if not entry.body.get("resend"):
            says = f"Send {entry.body['send']} went out while send {earlier[0]} might still have landed."
            return Line(name, Answer.NO, says, voucher)
        relied.append(entry.body["send"])
    committed = story.all_of(Kind.COMMITTED)
    late = _late_evidence(story)
    if committed and any(encode(item) != encode(committed[0].body["evidence"]) for item in late):
        says = "Two sends came back with different results; compare them."
        return Line(name, Answer.UNKNOWN, says, voucher, "whether both results are the same thing")
    if relied:
        says = f"Send {', '.join(map(str, relied))} repeated an earlier one under the same key, the effect's id."
        return Line(name, Answer.YES, says, f"{voucher}, and the service's own contract", "that the service keeps it")
    count = len(story.sends)
    says = "It was sent once." if count == 1 else f"Of {count} sends, each but the last is proven not to have landed."
    return Line(name, Answer.YES, says, voucher, "that nothing was done outside the gate")


def _allowed(story: Story) -> Line:
    name, voucher = "allowed_when_sent", story.voucher
    if not story.sends:
        return Line(name, Answer.NOT_APPLICABLE, "Nothing was sent.")
    open_, said = [], []
    for entry, before, after in story.sends:
        if problem := _approval_problem(story, entry):
            return Line(name, Answer.NO, problem, voucher)
        if after.grant is None:
            continue
        problem, unread = _grant_problem(after.grant, before, entry)
        if problem:
            return Line(name, Answer.NO, f"Send {entry.body['send']}: {problem}.", voucher)
        open_ += unread
        who = f" by {show(after.grant['by'])}" if "by" in after.grant else ""
        said.append(f"grant {show(after.grant.get('id', '(private)'))}{who}")
    approvals = story.all_of(Kind.APPROVED)
    said += [f"approval by {show(entry.body.get('by', 'somebody not named'))}" for entry in approvals]
    if not said:
        return Line(name, Answer.NOT_APPLICABLE, "No grant and no approval was asked for.", voucher)
    times = [when for entry, when in zip(story.entries, story.seen, strict=True) if entry.kind is Kind.DISPATCHED]
    clock = "the time of sending, which is the writer's clock"
    if times and times[0] is not None:
        clock += f" (witnesses saw the first send recorded by {moment(times[0] * 1000)})"
    covered = ", ".join(dict.fromkeys(said))
    return Line(name, Answer.YES, f"Covered by {covered}.", voucher, "; ".join(dict.fromkeys([*open_, clock])))


def _grant_problem(grant: dict[str, Any], state: State, sent: Entry) -> tuple[str, list[str]]:
    """Why a grant does not cover a send (empty if it does), and what could not be compared."""
    if is_hidden(grant):
        return "", ["the grant, which is private"]
    unread = []
    if "payload_digest" in grant and encode(grant["payload_digest"]) != encode(state.payload_digest):
        if is_hidden(grant["payload_digest"]) == is_hidden(state.payload_digest):
            return "the grant is for another payload", []
        unread.append("whether the grant names this payload, which is private")
    expires = grant.get("expires_at_ms")
    if is_hidden(expires):
        unread.append("when the grant ends, which is private")
    elif expires is not None and sent.at_ms >= expires:
        return f"the grant had ended at {moment(expires)}", []
    most, amount = grant.get("max_amount"), state.payload.get("amount")
    if most is not None:
        if is_hidden(most) or type(amount) is not int:
            unread.append("the amount, which the payload does not state in the open")
        elif amount > most:
            return f"the grant covers up to {most}, not {amount}", []
    if grant.get("under") is not None:
        problem, more = _grant_problem(grant["under"], state, sent)
        return problem, [*unread, *more]
    return "", unread


def _approval_problem(story: Story, sent: Entry) -> str:
    """Why a person's approval does not cover a send; empty if it does or none was asked for."""
    before = [entry for entry in story.entries if entry.seq < sent.seq]
    asked = [entry for entry in before if entry.kind is Kind.APPROVAL_REQUESTED]
    answers = [entry for entry in before if entry.kind in (Kind.APPROVED, Kind.REJECTED)]
    if not asked:
        return ""
    if not answers or answers[-1].seq < asked[-1].seq:
        return "It was sent before the approval that was asked for was given."
    if answers[-1].kind is Kind.REJECTED:
        return "It was sent although its approval was rejected."
    if encode(answers[-1].body["digest"]) != encode(asked[-1].body["digest"]):
        return "What was approved is not what the approval was asked for."
    expires = asked[-1].body.get("expires_at_ms")
    if not is_hidden(expires) and expires is not None:
        if answers[-1].at_ms >= expires:
            return "The approval was given after the request for it had ended."
        if sent.at_ms >= expires:
            return f"Send {sent.body['send']} was made after the approval had ended."
    state = story.final
    known = {"facts": state.facts, "payload": state.payload_digest, "key": state.request_key}
    if not has_hidden(known) and encode(asked[-1].body["digest"]) != encode(approval_digest(state)):
        return "What was approved is not what was decided and sent."
    return ""


def _premises(story: Story) -> Line:
    name, voucher = "premises_held_when_sent", story.voucher
    if not story.sends:
        return Line(name, Answer.NOT_APPLICABLE, "Nothing was sent.")
    decided = story.final.facts
    if not decided:
        return Line(name, Answer.NOT_APPLICABLE, "The decision rests on no facts.", voucher)
    for number, (entry, _, _) in enumerate(story.sends):
        read = entry.body.get("facts")
        if read is None and number == 0:
            continue  # the first send rests on the very reading that its decision records
        if read is None:
            return Line(name, Answer.NO, f"Send {entry.body['send']} records no reading of its premises.", voucher)
        if encode(read) != encode(decided):
            changed = sorted(key for key in {**decided, **read} if encode(decided.get(key)) != encode(read.get(key)))
            says = f"Before send {entry.body['send']}, {show(', '.join(changed))} had changed since the decision."
            return Line(name, Answer.NO, says, voucher)
    open_ = "that the facts were true, and what was expected of them"
    if has_hidden(decided):
        open_ += "; private facts were compared by digest"
    return Line(name, Answer.YES, f"Unchanged since decided: {show(', '.join(sorted(decided)))}.", voucher, open_)


def _rechecked(story: Story) -> Line:
    name, voucher = "rechecked_at_recovery", story.voucher
    again = [entry for entry, _, _ in story.sends[1:]]
    if not again:
        found = any(entry.body["via"] == "lookup" for entry in story.all_of(Kind.COMMITTED))
        says = "Nothing was sent again; it was looked up." if found else "Nothing was sent again."
        return Line(name, Answer.NOT_APPLICABLE, says, voucher)
    for entry in again:
        if entry.body.get("facts") is None or "grant" not in entry.body:
            says = f"Send {entry.body['send']} does not record that premises and grant were read again."
            return Line(name, Answer.NO, says, voucher)
    numbers = ", ".join(str(entry.body["send"]) for entry in again)
    return Line(name, Answer.YES, f"Premises and grant were read again before send {numbers}.", voucher)


_VIA = {
    "send": "the service's answer to the request",
    "resend": "the service's answer to the same request under the same key",
    "lookup": "found afterwards by asking the service",
}


def _evidence(story: Story) -> Line:
    name, voucher = "evidence", story.voucher
    committed = story.all_of(Kind.COMMITTED)
    if not committed:
        return Line(name, Answer.NOT_RECORDED, "The service's evidence is not among the records.", voucher)
    body = committed[-1].body
    how = _VIA.get(body["via"], "obtained in a way not known here")
    whose = {"yes": "", "no": " Somebody else did the identical thing."}.get(body["by_us"], " By whom is not known.")
    says = f"{show(body['evidence'])}: {how}.{whose}"
    return Line(name, Answer.RECORDED, says, f"{voucher}, quoting the service", "the service itself")


def _since(story: Story) -> Line:
    name, voucher = "since", story.voucher
    settled = story.all_of(Kind.SETTLED)
    released = story.all_of(Kind.RELEASED)
    if not settled and not released:
        return Line(name, Answer.NOT_RECORDED, "Nothing was recorded about what became of it.", voucher)
    said = [f"{show(entry.body['state'], 40)} ({moment(entry.at_ms)})" for entry in settled]
    if released:
        said.append("its budget was freed")
    return Line(name, Answer.RECORDED, f"{', then '.join(said)}.", voucher, "what happened after the last record")


def _decided_by(story: Story) -> Line:
    name, voucher = "decided_by", story.voucher
    body = story.entries[0].body
    context = body.get("context")
    who = body.get("by") or (context.get("by") if type(context) is dict else None)
    by = f" by {show(who, 80)}" if who else ""
    how = {
        "call": "the call itself",
        "propose": f"a proposal{by}",
        "grant": "a grant, with the facts that its giver saw",
        "redecide": f"a new decision{by}",
        "reconcile": "not known, its record was lost; it was written down when the services were gone through",
    }.get(body["decided_by"], show(body["decided_by"], 40))
    said = [f"decision {body['decision']}: {how}, {moment(story.entries[0].at_ms)}"]
    for entry in story.all_of(Kind.APPROVED, Kind.REJECTED, Kind.RESOLVED):
        who = show(entry.body.get("by", "somebody not named"), 80)
        why = f": {show(entry.body['why'], 200)}" if entry.body.get("why") else ""
        said.append(f"{entry.kind.value} by {who} at {moment(entry.at_ms)}{why}")
    return Line(name, Answer.RECORDED, f"{'; '.join(said)}.", voucher, "that these persons are who they are said to be")
