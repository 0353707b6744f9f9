"""Named mutants: the protocol with one thing wrong about it, and where that shows.

A mutant that survives means that the explorer is blind there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from interlock_tools.core.ends import Ending

from . import broken
from .bridge import PRODUCTION, Core
from .model import Model
from .setup import Setup, find


@dataclass(frozen=True)
class Mutant:
    """One mutant.

    Attributes:
        name: for ``--mutant``.
        about: what is wrong, in words.
        setup: the smallest world in which it shows.
        breaks: how the name of the broken invariant begins.
        core: the broken core, or the production core.
        flaws: what the worker does wrong (see ``worker`` and ``sends``).
    """

    name: str
    about: str
    setup: Setup
    breaks: str
    core: Core = PRODUCTION
    flaws: frozenset[str] = frozenset()

    def model(self) -> Model:
        return Model(self.setup, self.core, self.flaws)


def _in(name: str, hosts: int = 1, **changes: Any) -> Setup:
    """A setup with nothing going wrong but what is asked for; by default one crash."""
    quiet = {"crashes": 1, "faults": 0, "moves": 0, "unread": 0, **changes}
    return replace(find(name, hosts), **quiet)


def _rules(setup: Setup, **changes: Any) -> Setup:
    return replace(setup, rules=setup.rules._replace(**changes))


def _contract(setup: Setup, **changes: Any) -> Setup:
    return replace(setup, contract=replace(setup.contract, **changes))


_FACT = frozenset({"fact"})


def _proofs() -> list[Mutant]:
    """What the end of a send is taken to prove."""
    no, pre, unsent = Ending.DEFINITE_NO, Ending.PRECONDITION_FAILED, Ending.NOT_SENT
    return [
        Mutant(
            "resend_no_closes", "a resend's definite no closes the effect though an earlier send landed",
            _in("dedupes_forever", faults=1), "I", broken.closing(lambda n, m: m < n, no),
        ),
        Mutant(
            "late_no_closes", "a late definite no of an old send closes the effect under a newer one",
            _in("dedupes_forever", 2, faults=1), "I", broken.closing(lambda n, m: m > n, no),
        ),
        Mutant(
            "precondition_closes", "a failed precondition closes the effect though it may be its own earlier write",
            _in("enforces"), "I", broken.closing(lambda n, m: True, pre),
        ),
        Mutant(
            "not_sent_closes", "a resend that did not leave closes the effect though an earlier send landed",
            _in("dedupes_forever", faults=1), "I", broken.closing(lambda n, m: True, unsent),
        ),
        Mutant(
            "stored_error_retried", "a stored 500 is retried for ever",
            _in("dedupes_forever", faults=1), "I10", broken.stored_errors_are_plain(),
        ),
        Mutant(
            "stored_error_forgotten", "after a stored 500 a lookup that finds nothing leads to another send, for ever",
            _in("dedupes_forever+lookup", faults=1), "I10", broken.with_state(broken.no_stored_error),
        ),
        Mutant(
            "late_evidence_filed", "evidence that comes after AMBIGUOUS is filed and not believed",
            _in("neither", 2), "I8", broken.late_evidence_is_filed(),
        ),
        Mutant(
            "returns_keep_the_wait", "a lost send that comes back does not start its wait anew",
            _in("lookup", 2, faults=1), "I", broken.returns_keep_the_old_wait(),
        ),
    ]  # fmt: skip


def _marks_and_senders() -> list[Mutant]:
    """What is seen of a sender and of its mark."""
    return [
        Mutant(
            "last_mark_for_all", "a \"no\" mark of the last send is taken for the effect's",
            _in("dedupes_forever", faults=1, moves=1), "I", broken.last_mark_counts_for_all(),
        ),
        Mutant(
            "mark_cleared", "a mark is cleared, or its slot reused, before the end is recorded",
            _in("neither"), "I", flaws=frozenset({"mark_cleared"}),
        ),
        Mutant(
            "marks_survive_reboot", "a mark is believed after the machine has restarted",
            _in("neither"), "I", flaws=frozenset({"marks_survive_reboot"}),
        ),
        Mutant(
            "stopped_is_dead", "a sender that is alive but does nothing is taken over",
            _in("dedupes_forever", crashes=0), "I6", flaws=frozenset({"stopped_is_dead"}),
        ),
        Mutant(
            "lost_is_death", "a lost session is taken for the death of its process",
            _in("lookup", 2), "I", flaws=frozenset({"lost_is_dead"}),
        ),
        Mutant(
            "lost_starts_a_death_clock", "a lost session starts the clock of a death: its lease is not waited for",
            _in("lookup", 2), "I", broken.lost_without_lease(),
        ),
        Mutant(
            "lease_unchecked", "on_send does not look at the lease",
            _in("lookup", 2), "I", flaws=frozenset({"lease_unchecked"}),
        ),
        Mutant(
            "cancelled_is_over", "UNKNOWN is appended while a shielded send still lives",
            _in("dedupes_forever", crashes=0, faults=1), "I6", flaws=frozenset({"cancelled_is_over"}),
        ),
        Mutant(
            "never_gives_up", "a send whose end could not be recorded is taken for a running one for ever",
            _in("neither"), "I10", flaws=frozenset({"never_gives_up"}),
        ),
        Mutant(
            "strict_ignored", "strict is not: it acts on a lookup after a lost session",
            _in("lookup+strict", 2), "strict", broken.with_contract(lambda view: {"strict": False}),
        ),
    ]  # fmt: skip


def _journal() -> list[Mutant]:
    """How the journal is used."""
    return [
        Mutant(
            "no_compare_and_set", "entries are appended without the compare-and-set",
            _in("neither", gatherers=2, slow=True, crashes=0), "I", flaws=frozenset({"no_compare_and_set"}),
        ),
        Mutant(
            "sends_first", "the bytes leave before DISPATCHED is durable",
            _in("neither", crashes=0), "I1", flaws=frozenset({"sends_first"}),
        ),
        Mutant(
            "journal_not_durable", "an acknowledged commit does not survive the process",
            _in("neither"), "I", flaws=frozenset({"journal_not_durable"}),
        ),
        Mutant(
            "counted_not_recorded", "a counted \"not found\" is not recorded",
            _in("lookup", moves=1), "", broken.decides(broken.forgets_what_was_counted),
        ),
        Mutant(
            "observes_what_has_ended", "what is seen of the sends is recorded after the end",
            _in("neither"), "an effect that has ended", broken.observes_what_has_ended(),
        ),
    ]  # fmt: skip


def _checks() -> list[Mutant]:
    """Premises and grant."""
    assumed = _contract(_in("enforces+lookup", moves=2), never_true_again=_FACT)
    return [
        Mutant(
            "refuses_at_once", "it refuses at once when a premise failed that the service does not enforce",
            _in("lookup", moves=1), "I", broken.decides(broken.refuses_at_once),
        ),
        Mutant(
            "every_premise_is_final", "the short wait is used for a premise that the service does not enforce",
            _in("enforces_final+lookup", moves=1), "I",
            broken.with_contract(
                lambda view: {"enforces": view.contract.enforces | view.failing,
                              "never_true_again": view.contract.enforces | view.failing}
            ),
        ),
        Mutant(
            "never_true_again_assumed", "the short wait is used for an enforced premise that can be made true again",
            assumed, "I",
        ),
        Mutant(
            "create_only", "enforces is declared for create-only writes: created, deleted, created again",
            _rules(_in("enforces", moves=1), undoable=True), "I2",
        ),
        Mutant(
            "unreadable_is_failed", "checks that cannot be read are taken for failed ones",
            _in("neither", crashes=0, unread=1), "I3", flaws=frozenset({"unreadable_is_failed"}),
        ),
        Mutant(
            "keeps_old_checks", "a second send rests on the checks of the first",
            _in("lookup"), "I3", flaws=frozenset({"keeps_old_checks"}),
        ),
        Mutant(
            "sends_whatever_fails", "it resends though the checks fail",
            _in("dedupes_forever", moves=1), "I3", broken.decides(broken.sends_whatever_fails),
        ),
    ]  # fmt: skip


def _waits() -> list[Mutant]:
    """When a lookup's "not found" counts."""
    return [
        Mutant(
            "counted_from_dispatched", "\"not found\" is counted from DISPATCHED",
            _in("lookup", exact=True), "I", broken.with_state(broken.waits_from_dispatch),
        ),
        Mutant(
            "lag_ignored", "the lookup's lag is ignored",
            _in("lookup"), "I", broken.with_contract(lambda view: {"lookup_lag_ms": 0}),
        ),
        Mutant(
            "counts_at_once", "\"not found\" counts while a request may still land",
            _in("lookup"), "I", broken.with_contract(lambda view: {"send_timeout_ms": 0}),
        ),
        Mutant(
            "counts_from_its_answer", "\"not found\" counts from when the lookup was answered, not from when it began",
            _in("lookup", slow=True), "I", flaws=frozenset({"lookup_counts_from_its_answer"}),
        ),
        Mutant(
            "unreadable_lookup_counts", "a lookup that cannot be read is taken for \"not found\"",
            _in("lookup", unread=1), "I", flaws=frozenset({"unreadable_lookup_counts"}),
        ),
        Mutant(
            "waits_run_across_restarts", "the clock of an earlier boot is compared with that of this one",
            _in("lookup", faults=1), "I", broken.waits_run_across_restarts(),
        ),
        Mutant(
            "every_recovery_waits_anew", "recoverers that do not live long start the wait anew, for ever",
            _in("lookup"), "I10", broken.every_recovery_waits_anew(),
        ),
        Mutant(
            "gives_up_instead_of_waiting", "it says AMBIGUOUS where waiting would tell",
            _in("lookup"), "I8", broken.decides(broken.gives_up_instead_of_waiting),
        ),
        Mutant(
            "useless_lookups_decide", "a lookup that settles nothing takes away what the service enforces",
            _in("enforces+lookup", 2, unread=1), "I8", broken.decides(broken.useless_lookups_decide),
        ),
    ]  # fmt: skip


def _window() -> list[Mutant]:
    """How long the service knows the key."""
    return [
        Mutant(
            "window_from_latest", "the dedup window is counted from the latest send",
            _in("dedupes", exact=True), "I2", broken.with_state(broken.dispatched_of_the_latest),
        ),
        Mutant(
            "window_unchecked", "on_send does not look at the dedup window",
            _in("dedupes"), "I2", flaws=frozenset({"window_unchecked"}),
        ),
        Mutant(
            "window_unchecked_on_first", "on_send of a first send does not look at the dedup window",
            _in("dedupes", crashes=0), "I2", flaws=frozenset({"window_unchecked_on_first"}),
        ),
        Mutant(
            "window_known_late", "the hook's deadline is set after the append, when the window may be over already",
            _in("dedupes", slow=True), "I2", flaws=frozenset({"window_known_late"}),
        ),
        Mutant(
            "window_without_timeout", "the dedup window is not shortened by the time that a request may travel",
            _in("dedupes"), "I2", broken.with_contract(lambda view: {"send_timeout_ms": 0}),
        ),
        Mutant(
            "window_without_skew", "the dedup window is not shortened by what clocks may disagree by",
            _in("dedupes", 2), "I2", broken.with_contract(broken.window_with_skew),
        ),
        Mutant(
            "clock_behind_closes", "a clock that is behind by less than the skew closes the window",
            _in("dedupes", 2), "I8", broken.with_contract(broken.clock_behind_closes),
        ),
        Mutant(
            "lost_after_the_window", "a lost sender that was dispatched after the window is answered with a resend",
            _in("dedupes", 2, faults=1), "I2", broken.with_state(broken.dispatched_of_the_first),
        ),
    ]  # fmt: skip


def _all() -> dict[str, Mutant]:
    found = [*_proofs(), *_marks_and_senders(), *_journal(), *_checks(), *_waits(), *_window()]
    return {mutant.name: mutant for mutant in found}


MUTANTS = _all()
