"""Collects cosignatures for a checkpoint from all witnesses of a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interlock_tools.receipts.checkpoint import parse_checkpoint
from interlock_tools.receipts.note import Note
from interlock_tools.receipts.policy import Policy

from .client import Prove, WitnessClient
from .errors import WitnessAhead, WitnessDisagrees, WitnessError


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the witnesses answered.

    Attributes:
        note: the checkpoint with the cosignatures that came.
        sizes: per witness that cosigned, the size to remember for the next time.
        errors: per witness that did not, why.
    """

    note: Note
    sizes: Mapping[str, int]
    errors: Mapping[str, WitnessError]

    @property
    def amnesia(self) -> WitnessError | None:
        """The answer of a witness that remembers more of this log, or another: then nothing may be sent."""
        found = [error for error in self.errors.values() if isinstance(error, (WitnessAhead, WitnessDisagrees))]
        return found[0] if found else None


def clients_of(policy: Policy, timeout_s: float = 10.0) -> dict[str, WitnessClient]:
    """Return a client for each witness of the policy that has a URL, by the policy's name for it."""
    return {
        name: WitnessClient(policy.urls[name], key, timeout_s)
        for name, key in policy.witnesses.items()
        if name in policy.urls
    }


def gather(note: Note, clients: Mapping[str, WitnessClient], prove: Prove, last_sizes: Mapping[str, int]) -> Gathered:
    """Ask every witness, one after the other, to cosign a log's latest checkpoint.

    Args:
        note: the checkpoint, signed by the log; the latest one, or a witness that saw a later one seems ahead.
        clients: by the policy's name for the witness.
        prove: makes consistency proofs of this log.
        last_sizes: per witness the size that it cosigned last, as far as known.

    Whether enough of them answered is for ``Policy.met_by(set(gathered.sizes))`` to say.
    """
    size = parse_checkpoint(note.text).size
    sizes: dict[str, int] = {}
    errors: dict[str, WitnessError] = {}
    for name, client in clients.items():
        try:
            note = note.with_signatures(client.cosign(note, prove, last_sizes.get(name, 0)))
            sizes[name] = size
        except WitnessError as error:
            errors[name] = error
    return Gathered(note, sizes, errors)
