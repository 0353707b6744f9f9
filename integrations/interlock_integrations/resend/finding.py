"""Finds an effect's email again: by list and retrieve, or by a probe of its key.

What counts as evidence, strongest first:

1. A retrieved email whose tag is the effect's id. Every email of a gated tool
   has that tag. Whether Resend returns tags is not certain (the SDK's ``Email``
   does not list them); where it returns another effect's, it is not ours.
2. Where no such tag is returned: an email with the same sender, recipient,
   subject and bodies, character for character, accepted while a send of this
   effect could land, and not one that the journal gives to another effect. That
   the recipient was sent exactly this is certain; that this effect did it is
   not, so it is kept with ``by_us: unknown``.
3. The probe's answer that the key was used: nobody else makes our keys.

"Not found" is answered only if the list covers the whole time since the first
send and has nothing to that recipient with that subject left unexplained; for
the probe, only while the key is sure to be remembered. Otherwise the lookup
raises ``CannotKnow``, and a person decides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import requests
from resend.exceptions import ResendError

from interlock_tools import CannotKnow, Evidence, Gate
from interlock_tools.core.decide import ServiceContract, dedup_window_left_ms
from interlock_tools.core.states import State, fold
from interlock_tools.errors import describe

from ..transport import root_cause
from .client import ResendClient
from .errors import answer_of

EFFECT_ID = "interlock_effect_id"
"""Name of the tag that holds the effect's id."""

PAGE = 100
MAX_MAILS = 10_000
"""Bound on one listing, and on the effects of a journal that are looked through."""

MARGIN = timedelta(minutes=10)
"""How far Resend's clock and ours may disagree when its emails are dated."""

PROBE_SENDER = "probe@interlock.invalid"
"""An address in a top-level domain that nobody can have (RFC 2606), so never a verified sender."""

PROBE_RECIPIENT = "delivered@resend.dev"
"""Resend's own address for tests."""


class UnknownAnswer(RuntimeError):
    """An answer to the probe that it does not know. Nothing follows from it."""


@dataclass(frozen=True)
class Finder:
    """Looks for the emails of one effect's requests.

    Attributes:
        gate: whose journal knows when an effect was sent.
        client: the account.
        contract: the effect's contract, when it is needed.
        reads: the key may list and retrieve.
        probes: the key probe was asked for.
        retention: how long the plan keeps emails readable.
    """

    gate: Gate
    client: ResendClient
    contract: Callable[[], ServiceContract]
    reads: bool
    probes: bool
    retention: timedelta

    def find(self, mail: Mapping[str, Any], idempotency_key: str) -> Evidence | None:
        """Return evidence of the email, or None if it was certainly not accepted.

        Raises:
            CannotKnow: what Resend still tells settles nothing.
            Exception: it could not be asked, or answered something unknown.
        """
        state = fold(self.gate.journal.entries(idempotency_key))
        if self.reads:
            try:
                return self._by_list(mail, idempotency_key, state)
            except CannotKnow:
                if not self.probes:
                    raise
        return self._by_probe(idempotency_key, state)

    # -- list and retrieve --------------------------------------------------------------------------------

    def _by_list(self, mail: Mapping[str, Any], effect_id: str, state: State) -> Evidence | None:
        sends = [send.dispatched.wall_ms for send in state.sends]
        since = _moment(min(sends)) - MARGIN
        until = _moment(max(sends)) + timedelta(milliseconds=self.contract().send_timeout_ms) + MARGIN
        alike: list[dict[str, Any]] = []
        doubtful: list[str] = []
        for listed in self._listed(since):
            if not _same_addresses(listed.get("to"), mail["to"]):
                continue
            with reachable():
                email = self.client.email(str(listed["id"]))
            whose = _effect_of(email)
            if whose == effect_id:
                return Evidence(_kept(email, "tag"))
            if whose is not None:
                continue
            if _date(email) > until or str(email.get("subject")) != mail["subject"]:
                continue
            if all(email.get(name) == mail[name] for name in ("from", "text", "html") if name in mail):
                alike.append(email)
            else:
                doubtful.append(str(email["id"]))
        if alike:
            return self._by_content(alike, effect_id, state, doubtful)
        self._check_absence(doubtful, since)
        return None

    def _by_content(
        self, alike: list[dict[str, Any]], effect_id: str, state: State, doubtful: list[str]
    ) -> Evidence | None:
        taken = self._of_other_effects(effect_id, state.name)
        free = [email for email in alike if email["id"] not in taken]
        if free:
            return Evidence(_kept(free[-1], "content"), by_us="unknown")
        self._check_absence(doubtful, _moment(min(send.dispatched.wall_ms for send in state.sends)) - MARGIN)
        return None

    def _check_absence(self, doubtful: list[str], since: datetime) -> None:
        """Raise ``CannotKnow`` unless that nothing was found means that nothing is there."""
        if doubtful:
            raise CannotKnow(
                f"Resend has {len(doubtful)} email(s) to this recipient with this subject and another body "
                f"({', '.join(doubtful[:3])}); whether one of them is this effect's cannot be told"
            )
        if _moment(self.gate.journal.now().wall_ms) - self.retention > since:
            raise CannotKnow("it is longer ago than Resend keeps emails, so that it is not listed says nothing")

    def _listed(self, since: datetime) -> Iterator[dict[str, Any]]:
        """Every email since a moment, all pages, newest first."""
        after: str | None = None
        count = 0
        while True:
            with reachable():
                page = self.client.page(PAGE, after)
            mails = page.get("data")
            if page.get("object") != "list" or not isinstance(mails, list):
                raise UnknownAnswer("Resend's answer is not a list, so it does not say that something is absent")
            for mail in mails:
                if _date(mail) < since:
                    return
                count += 1
                if count > MAX_MAILS:
                    raise CannotKnow(f"Resend lists more than {MAX_MAILS} emails since")
                yield mail
            if not page.get("has_more") or not mails:
                return
            after = str(mails[-1]["id"])

    def _of_other_effects(self, effect_id: str, name: str) -> set[str]:
        """Ids of emails that the journal gives to other effects of this name."""
        found: set[str] = set()
        after = 0
        for _ in range(MAX_MAILS // PAGE):
            rows = self.gate.journal.effects(after, PAGE)
            for row in rows:
                after = row.position
                if row.effect_id != effect_id and row.name == name:
                    result = self.gate.outcome(row.effect_id).result
                    if isinstance(result, dict):
                        found.add(str(result.get("id")))
            if len(rows) < PAGE:
                return found
        raise CannotKnow("the journal holds too many effects to tell whose email this is")

    # -- the key probe --------------------------------------------------------------------------------------

    def _by_probe(self, effect_id: str, state: State) -> Evidence | None:
        """Ask about the key by a body that is well-formed and whose sender is not verified.

        Seen, not documented: 409 for a used key, 403 for a fresh one. Anything else raises.
        """
        mail = {"from": PROBE_SENDER, "to": [PROBE_RECIPIENT], "subject": "Key probe", "text": "Key probe"}
        try:
            with reachable():
                self.client.probe(mail, effect_id)
        except ResendError as error:
            answer = answer_of(error)
            if (answer.status, answer.name) == (409, "invalid_idempotent_request"):
                return Evidence({"idempotency_key": effect_id, "found_by": "key probe", "answer": answer.name})
            if (answer.status, answer.name) != (403, "validation_error"):
                raise UnknownAnswer(f"the key probe was answered {answer.status} {answer.name}") from error
        else:
            raise UnknownAnswer(f"the key probe was accepted: {PROBE_SENDER} may send, so it is no probe here")
        if dedup_window_left_ms(state, self.contract(), self.gate.journal.now()) <= 0:
            raise CannotKnow("Resend may have forgotten the key by now, so that it is unused says nothing")
        return None


@contextlib.contextmanager
def reachable() -> Generator[None, None, None]:
    """Say in plain words that Resend cannot be reached. Raises ``ConnectionError`` for the transport's own."""
    try:
        yield
    except requests.RequestException as error:
        raise ConnectionError(f"Resend cannot be reached: {describe(root_cause(error))}") from error


def _kept(email: Mapping[str, Any], found_by: str) -> dict[str, Any]:
    """Those fields of an email that are kept as evidence."""
    names = ("id", "to", "from", "subject", "created_at", "last_event")
    return {**{name: email[name] for name in names if email.get(name) is not None}, "found_by": found_by}


def _effect_of(email: Mapping[str, Any]) -> str | None:
    """The id of the effect that sent an email; None where its tags do not tell, or are not told."""
    for tag in email.get("tags") or []:
        if isinstance(tag, Mapping) and tag.get("name") == EFFECT_ID:
            return str(tag.get("value"))
    return None


def _same_addresses(theirs: Any, ours: list[str]) -> bool:
    listed = [theirs] if isinstance(theirs, str) else list(theirs or [])
    return sorted(str(one).lower() for one in listed) == sorted(one.lower() for one in ours)


def _moment(wall_ms: int) -> datetime:
    return datetime.fromtimestamp(wall_ms / 1000, timezone.utc)


def _date(email: Mapping[str, Any]) -> datetime:
    """When an email was accepted: ``2026-09-07 10:00:00.123456+00`` and its like."""
    text = str(email.get("created_at")).replace("Z", "+00:00")
    if text[-3:-2] in "+-":
        text += ":00"
    whole, _, rest = text.partition(".")
    try:
        if rest:
            digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            text = f"{whole}.{digits[:6]:0<6}{rest[len(digits) :]}"
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UnknownAnswer("Resend dates an email in a way that cannot be read") from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
