"""``gate.records``: what a gate signs, its receipts, and its keys. Light: what it needs is imported on first use."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from os import PathLike
from typing import TYPE_CHECKING, Any

from .errors import BadArguments, DefinitionError
from .journal.protocol import Journal

if TYPE_CHECKING:
    from .definition import Definition
    from .receipts import Policy
    from .receipts.keys import Signer
    from .sealing import Signing
    from .sealing.front import Front
    from .sealing.reconcile import Reconciliation
    from .sealing.sealer import Declared


def is_signed(journal: Journal) -> bool:
    """Whether somebody signs what is written to this journal."""
    return journal.records.fact("origin") is not None


def _check_private(name: str, paths: Any) -> None:
    listed = isinstance(paths, Sequence) and not isinstance(paths, str)
    if not listed or not all(isinstance(path, str) and all(path.split(".")) for path in paths):
        raise DefinitionError(f"{name}: private names values like payload.to, facts.email or evidence.id, in a list")


class Records:
    """The signed records of a gate's journal. Get it as ``gate.records``."""

    def __init__(
        self,
        journal: Journal,
        signing: Signing | str | os.PathLike[str] | None,
        witness: str | None,
        witnesses: Policy | str | os.PathLike[str] | None,
        receipts_dir: str | os.PathLike[str] | None,
        private: Mapping[str, Sequence[str]],
    ) -> None:
        self._journal = journal
        if not isinstance(private, Mapping) or not all(isinstance(pattern, str) for pattern in private):
            raise DefinitionError(
                'private= takes values by the effects they are of, such as {"resend.*": ["payload.to"]}'
            )
        for pattern, paths in private.items():
            _check_private(pattern, paths)
        self._private = dict(private)
        self._declared: dict[str, tuple[dict[str, str] | None, tuple[str, ...]]] = {}
        self._front: Front | None = None
        if signing is None and receipts_dir is not None and is_signed(journal):
            raise DefinitionError("what is written to this journal is signed; give signing= with receipts_dir=")
        if signing is not None or receipts_dir is not None:
            from .sealing.front import Front

            self._front = Front(
                journal,
                signing,
                witness=witness,
                witnesses=witnesses,
                receipts_dir=receipts_dir,
                declared=self._declaration,
            )
            journal.sealing = self._front
        elif witnesses is not None:
            raise DefinitionError("witnesses= needs signing=: a witness cosigns what the log's key has signed")
        elif journal.sealing is None and is_signed(journal):
            from .sealing.front import Unsigned

            journal.sealing = Unsigned()

    @property
    def front(self) -> Front | None:
        """What signs; None where signing is off."""
        return self._front if self._front is not None and self._front.keys is not None else None

    @property
    def writes(self) -> bool:
        """Whether receipts are written to a directory."""
        return self._front is not None and self._front.receipts_dir is not None

    def require_front(self) -> Front:
        """Return what signs. Raises ``BadArguments`` where signing is off."""
        front = self.front
        if front is None:
            raise BadArguments("signing is off here; open the gate with signing=…")
        return front

    # -- declarations ----------------------------------------------------------------------------------

    def declare(self, name: str, private: Sequence[str], service: Mapping[str, str] | None) -> None:
        """Remember what of an effect is private, and at which service it is done. Raises ``DefinitionError``."""
        _check_private(name, private)
        for pattern, paths in self._private.items():
            if fnmatchcase(name, pattern):
                private = (*private, *paths)
        plain = None if service is None else dict(service)
        if plain is not None and not all(isinstance(item, str) for pair in plain.items() for item in pair):
            raise DefinitionError(f"{name}: service is a dict of texts, such as name and account")
        if plain is not None or private:
            self._declared[name] = (plain, tuple(dict.fromkeys(private)))

    def _declaration(self, name: str) -> Declared | None:
        found = self._declared.get(name)
        if found is None:
            return None
        from .sealing.sealer import Declared, declared_paths

        return Declared(found[0], declared_paths(found[1]))

    # -- after a loss ----------------------------------------------------------------------------------

    def reconcile(
        self,
        definitions: Mapping[str, Definition],
        requests: Iterable[tuple[str, Mapping[str, Any]]],
        by: str,
        log: Signer | None,
    ) -> Reconciliation:
        """See ``Gate.reconcile``."""
        from .sealing.reconcile import Reconciler

        return Reconciler(self.require_front(), definitions, by).run(requests, log)

    # -- receipts --------------------------------------------------------------------------------------

    def receipt(self, effect_id: str, disclosing: Sequence[str] = ()) -> bytes:
        """Return the bytes of an effect's receipt; see ``Gate.receipt``."""
        from .sealing import issue

        front = self.front
        signer = front.writer() if front is not None else None
        return issue.receipt(self._journal, effect_id, signer, disclosing)

    def plain_receipt(self, effect_id: str, disclosing: Sequence[str] = ()) -> dict[str, Any]:
        """Return an effect's receipt as plain JSON values."""
        value: dict[str, Any] = json.loads(self.receipt(effect_id, disclosing))
        return value

    def erase(self, effect_id: str) -> None:
        """Erase the private values of an effect that is closed. Its receipts stay as good as they are.

        Signatures and proofs are over salted digests, and the salt is erased too. Copies of the journal, and what
        the database has not overwritten yet, are the operator's to see to. A later call of the same request is
        answered as one with another payload.

        Raises:
            NotDecidable: there is no such effect, it is open, or nothing of it is private.
        """
        from .sealing.sealer import erase

        erase(self._journal, effect_id)

    def write(self, effect_ids: Iterable[str]) -> None:
        """Write receipts into ``receipts_dir``, where one was named."""
        if self._front is not None:
            self._front.write(effect_ids)

    def flush(self) -> dict[str, str]:
        """Sign a checkpoint now and have it cosigned. Returns why witnesses did not, by their names.

        Raises:
            BadArguments: signing is off, or there is no log key.
        """
        log = self.require_front().log
        if log is None:
            raise BadArguments("there is no log key, so no checkpoints are signed; give Signing(writer=…, log=…)")
        return log.flush()

    def policy(self) -> str:
        """Return the lines that a policy needs to trust this gate's keys. Raises ``BadArguments``: signing is off."""
        keys = self.require_front().keys
        assert keys is not None
        return keys.policy()

    # -- keys ------------------------------------------------------------------------------------------

    def rotate_writer(self, signer: Signer | None = None) -> PathLike[str] | None:
        """Let another key sign records from now on; see ``sealing.rotate``. Stop this journal's other processes first.

        Args:
            signer: the new key; by default one is made beside the others, and its file is returned.
        """
        from .sealing.rotate import rotate_writer

        return rotate_writer(self.require_front(), signer)

    def retire_writer(self, key: str) -> None:
        """Say that what a key, written as in a policy, signs from now on is not the writer's."""
        from .sealing.rotate import retire_writer

        retire_writer(self.require_front(), key)

    def move_log(self, signer: Signer | None = None) -> PathLike[str] | None:
        """Let another key sign checkpoints, in one that both sign. Stop this journal's other processes first.

        Args:
            signer: the new key, of the log's name; by default one is made beside the others, and its file is returned.
        """
        from .sealing.rotate import move_log

        return move_log(self.require_front(), signer)

    def close(self) -> None:
        """Sign a last checkpoint, and write the receipts that are due."""
        if self._front is not None:
            self._front.close()
            if self._journal.sealing is self._front:
                self._journal.sealing = None
