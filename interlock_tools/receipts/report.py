"""What a verifier says: one line per claim, who vouches for it, and what was not checked.

There is no lone "valid". Two kinds of lines: *checks* say whether the records
are what they pretend to be, *claims* say what they mean. A check that fails
makes the receipt INVALID, and then nothing is claimed. A claim answered "no"
(it was not allowed when it was sent) leaves the records as good as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class Word(str, Enum):
    """How much stands behind a receipt, from nothing upwards. A receipt is never graded up by what is missing."""

    INVALID = "INVALID"
    """A check failed."""
    CONSISTENT = "CONSISTENT"
    """The records agree with one another. Whoever wrote the file could have made all of them up."""
    SIGNED = "SIGNED"
    """By a trusted writer, who could still sign another story."""
    LOGGED = "LOGGED"
    """And in a log whose key is trusted; its operator could still keep two logs."""
    WITNESSED = "WITNESSED"
    """And seen in that log by the witnesses that the policy asks for."""
    CONFIRMED_BY_SERVICE = "CONFIRMED_BY_SERVICE"
    """And the service, asked now, says the same in a field that the account cannot edit."""
    CONTRADICTED = "CONTRADICTED"
    """The service, asked now, says otherwise."""


LADDER = (
    Word.INVALID,
    Word.CONSISTENT,
    Word.SIGNED,
    Word.LOGGED,
    Word.WITNESSED,
    Word.CONFIRMED_BY_SERVICE,
)
"""The words in order. CONTRADICTED stands apart."""


class Answer(str, Enum):
    """What is said of a check or a claim."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """The records do not say, or nobody can."""
    RECORDED = "recorded"
    """For what is not a question of yes or no: the sentence says what."""
    NOT_RECORDED = "not recorded"
    NOT_APPLICABLE = "not applicable"
    """Nothing was sent, or nothing of the kind was declared."""
    NOT_CHECKED = "not checked"


class Carrier(str, Enum):
    """What the service's answer rests on."""

    STRONG = "strong"
    """A field that the service fills in by itself."""
    WEAK = "weak"
    """A field that the account can edit, such as metadata."""


@dataclass(frozen=True, slots=True)
class ServiceFinding:
    """What the service answered when it was asked about the effect.

    Attributes:
        agrees: YES, NO, or UNKNOWN where it could not be asked or could not tell.
        says: its answer in a sentence.
        carrier: what the answer rests on.
    """

    agrees: Answer
    says: str
    carrier: Carrier = Carrier.STRONG


@dataclass(frozen=True, slots=True)
class Line:
    """One check or claim.

    Attributes:
        name: a short stable name, such as ``chain`` or ``happened``.
        answer: yes, no, unknown or not checked.
        says: one sentence.
        vouched_by: who stands behind the answer.
        not_checked: what the answer leaves open; empty where that is nothing.
    """

    name: str
    answer: Answer
    says: str
    vouched_by: str = ""
    not_checked: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the line as plain JSON."""
        return {
            "name": self.name,
            "answer": self.answer.value,
            "says": self.says,
            "vouched_by": self.vouched_by,
            "not_checked": self.not_checked,
        }


@dataclass(frozen=True, slots=True)
class Subject:
    """What a receipt is about, as far as it could be read; what a check against the service needs."""

    effect_id: str
    name: str
    request_key: str
    payload: Mapping[str, Any]
    service: Mapping[str, str]
    evidence: Any
    phase: str


MUST_HOLD = ("at_most_once", "allowed_when_sent", "premises_held_when_sent", "rechecked_at_recovery")
"""Claims that count as a failed check where the answer is no: what the gate promises of every effect."""

_HEADLINES = {
    Word.INVALID: "A check failed: do not rely on anything in this receipt.",
    Word.CONSISTENT: "The records agree with one another, and nothing shows who wrote them.",
    Word.SIGNED: "A trusted writer signed these records. The writer could still have signed a different story.",
    Word.LOGGED: "A trusted writer signed these records and a trusted log holds them. "
    "The log's operator could still keep a second log for others.",
    Word.WITNESSED: "These records are tamper-evident: the policy's witnesses saw the log that holds them, "
    "and it cannot be rewritten without their seeing it.",
    Word.CONFIRMED_BY_SERVICE: "These records are tamper-evident, and the service confirms what they say happened.",
    Word.CONTRADICTED: "The service says otherwise.",
}

LIMITS = (
    "A receipt shows what was recorded and when others saw it. It does not show that nothing happened outside "
    "the gate, that nothing was recorded after its last record, that the premises were true, or that the decision "
    "was right. Two witnesses of one operator are one witness."
)
"""Printed under every report."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of a verifier.

    Attributes:
        word: how much stands behind the receipt.
        required: the least that the policy asks for.
        checks: whether the records are what they pretend to be.
        claims: what they mean; all unknown where a check failed.
        subject: what it is about; None where that could not be read.
        service: whether the service was asked, and could answer.
    """

    word: Word
    required: Word
    checks: tuple[Line, ...]
    claims: tuple[Line, ...]
    subject: Subject | None = None
    service: Answer = Answer.NOT_CHECKED

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that failed and of the promises that were not kept."""
        checks = [line.name for line in self.checks if line.answer is Answer.NO]
        return (*checks, *(line.name for line in self.claims if line.answer is Answer.NO and line.name in MUST_HOLD))

    @property
    def exit_code(self) -> int:
        """0 policy met; 1 a check failed; 2 sound but below the policy; 3 the service disagrees; 4 cannot tell."""
        if self.word is Word.CONTRADICTED:
            return 3
        if self.failed:
            return 1
        if LADDER.index(self.word) < LADDER.index(self.required):
            return 2
        return 4 if self.service is Answer.UNKNOWN else 0

    def line(self, name: str) -> Line:
        """Return the check or claim of that name. Raises ``KeyError``."""
        for line in (*self.checks, *self.claims):
            if line.name == name:
                return line
        raise KeyError(name)

    def with_service(self, finding: ServiceFinding) -> Report:
        """Return the report with what the service answered. Weak evidence neither confirms nor contradicts."""
        if self.word is Word.INVALID:
            return self
        weak = finding.carrier is Carrier.WEAK
        answer = Answer.UNKNOWN if weak and finding.agrees is Answer.NO else finding.agrees
        word = self.word
        if answer is Answer.NO:
            word = Word.CONTRADICTED
        elif answer is Answer.YES and not weak and word is Word.WITNESSED:
            word = Word.CONFIRMED_BY_SERVICE
        open_ = "the account can edit what this answer rests on" if weak else ""
        voucher = f"the service, today ({finding.carrier.value} carrier)"
        if finding.agrees is Answer.UNKNOWN and not weak:
            voucher = ""
        line = Line("service", answer, _on_one_line(finding.says), voucher, open_)
        checks = tuple(line if old.name == "service" else old for old in self.checks)
        return replace(self, word=word, checks=checks, service=answer)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        subject = self.subject
        return {
            "word": self.word.value,
            "required": self.required.value,
            "exit_code": self.exit_code,
            "says": self.headline,
            "effect_id": subject.effect_id if subject else None,
            "effect": subject.name if subject else None,
            "request_key": subject.request_key if subject else None,
            "checks": [line.to_json() for line in self.checks],
            "claims": [line.to_json() for line in self.claims],
            "limits": LIMITS,
        }

    @property
    def headline(self) -> str:
        """The word in a sentence."""
        return _HEADLINES[self.word]

    def __str__(self) -> str:
        lines = [f"{self.word.value}: {self.headline}"]
        if self.subject is not None:
            subject = self.subject
            lines.append(f"Effect {subject.effect_id}: {subject.name}, request {subject.request_key}.")
        if self.failed:
            lines.append(f"Failed: {', '.join(name.replace('_', ' ') for name in self.failed)}.")
        if LADDER.index(_rung(self.word)) < LADDER.index(self.required):
            lines.append(f"The policy asks for {self.required.value}.")
        for title, group in (("Claims", self.claims), ("Checks", self.checks)):
            lines += ["", title]
            for line in group:
                lines.append(f"  {line.name.replace('_', ' ')}: {line.answer.value}. {line.says}")
                if line.vouched_by:
                    lines.append(f"      vouched for by {line.vouched_by}")
                if line.not_checked:
                    lines.append(f"      not checked: {line.not_checked}")
        return "\n".join([*lines, "", LIMITS, ""])


def _on_one_line(words: str, most: int = 400) -> str:
    """What a service and a receipt said, so that it cannot pass for lines of the report."""
    plain = "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in words[: most + 1])
    return plain if len(plain) <= most else plain[:most] + "…"


def _rung(word: Word) -> Word:
    return Word.INVALID if word is Word.CONTRADICTED else word
