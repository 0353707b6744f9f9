"""What a gate with signing, or with a directory for receipts, hangs into its journal."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ..core.entries import Kind
from ..errors import BadArguments, DefinitionError, InterlockError, JournalUnusable, describe
from ..journal.protocol import Journal
from ..journal.records import Sealable
from ..receipts.keys import Signer
from ..receipts.policy import Policy, parse_policy
from . import issue
from .log import ORIGIN, Log
from .sealer import Declared, Sealer
from .signing import Keys, Signing, open_keys

log = logging.getLogger("interlock_tools")

Source = Signing | Keys | str | os.PathLike[str]
"""What names the keys: a directory, or a ``Signing``."""


class Front:
    """Signs what a journal appends, keeps its log, and writes receipts.

    Args:
        journal: whose records.
        source: which keys; None where signing is off.
        witness: ``before``, ``after`` or None; see ``Gate``.
        witnesses: a policy, or the path of one, that names witnesses with their addresses.
        receipts_dir: where receipts are written; None: nowhere.
        declared: what is declared of an effect, by its name.

    Raises:
        KeyUnusable, PolicyError: a key or the policy cannot be used.
        DefinitionError: these options do not fit together.
        JournalUnusable: the journal's log is kept under another key.
    """

    def __init__(
        self,
        journal: Journal,
        source: Source | None,
        *,
        witness: str | None = "after",
        witnesses: Policy | str | os.PathLike[str] | None = None,
        receipts_dir: str | os.PathLike[str] | None = None,
        declared: Callable[[str], Declared | None] = lambda name: None,
    ) -> None:
        policy = _policy(witness, witnesses)
        self.journal = journal
        self.keys = open_keys(source) if source is not None else None
        self.waits = witness == "before"
        self.receipts_dir = _directory(receipts_dir)
        self._sealer = Sealer(self.writer, declared) if self.keys is not None else None
        self._due: set[str] = set()
        self.log = self._open_log(source, policy)
        if self.waits and self.log is None:
            raise DefinitionError("witness='before' needs signing with a log key, and witnesses=")

    def _open_log(self, source: Source | None, policy: Policy | None) -> Log | None:
        if self.keys is None:
            return None
        records = self.journal.records
        origin = records.fact(ORIGIN)
        signers = self.keys.log(origin) if origin != "" else []
        if origin is None:
            records.put_facts({ORIGIN: signers[0].name if signers else ""})
        elif not signers and origin:
            raise JournalUnusable(
                f"{self.journal.url}: its log is {origin!r}, and no log key of that name is given. Open it with the "
                "keys that it was signed with"
            )
        if not signers:
            return None
        options = source if isinstance(source, Signing) else Signing(self.keys.writer)
        opened = Log(records, signers, policy, options.flush_s, options.flush_records, self._write_due, self._wall_ms)
        opened.open()
        return opened

    def _wall_ms(self) -> int:
        return self.journal.now().wall_ms

    def writer(self) -> Signer:
        """The key that signs records now."""
        assert self.keys is not None
        return self.keys.writer

    # -- called by the journal -----------------------------------------------------------------------

    def seal(self, journal: Journal, plans: Sequence[Sealable]) -> None:
        """Give each plan its records.

        Raises:
            RecordsMissing: it would send, and a witness remembers more than the journal holds.
            SigningFailed: something could not be signed.
        """
        if self._sealer is None:
            return
        if self.log is not None and self.log.missing is not None and any(map(_sends, plans)):
            raise self.log.missing
        self._sealer.seal(journal, plans)

    def written(self, plans: Sequence[Sealable]) -> None:
        """Take note of what is durable now."""
        if self._sealer is not None:
            self._sealer.written(plans)
        if self.receipts_dir is not None:
            settled = [plan.effect_id for plan in plans if any(entry.kind is Kind.SETTLED for entry in plan.entries)]
            self._due.update(settled)
            if settled and self.log is None:
                self._write_due()
        if self.log is not None:
            self.log.note(sum(len(plan.entries) for plan in plans))

    def clear(self, effect_id: str) -> str | None:
        """Wait until witnesses have seen the effect's last record; return why they have not, or None."""
        if self.log is None:
            return "there is no log"
        return self.log.clear(lambda: self._leaf(effect_id))

    def _leaf(self, effect_id: str) -> int | None:
        stored = self.journal.records.of(effect_id)
        return stored[-1].leaf if stored else None

    # -- receipts ----------------------------------------------------------------------------------------

    def require_complete(self) -> None:
        """Raise ``RecordsMissing`` if a witness remembers more than the journal holds."""
        if self.log is not None and self.log.missing is not None:
            raise self.log.missing

    def write(self, effect_ids: Iterable[str]) -> None:
        """Write the receipts of some effects, with a checkpoint that covers them where that can be had now."""
        if self.receipts_dir is None:
            return
        self._due.update(effect_ids)
        if not self._due:
            return
        if self.log is None:
            self._write_due()
            return
        try:
            self.log.flush()
        except InterlockError as error:
            log.warning("receipts are written without a new checkpoint: %s", describe(error))
        self._write_due()

    def _write_due(self) -> None:
        """Write what is due. A receipt that cannot be written is a warning: the record is in the journal."""
        directory = self.receipts_dir
        while directory is not None and self._due:
            effect_id = self._due.pop()
            signer = self.keys.writer if self.keys is not None else None
            try:
                issue.write_receipt(directory, effect_id, issue.receipt(self.journal, effect_id, signer))
            except (InterlockError, OSError) as error:
                log.warning("the receipt of effect %s could not be written: %s", effect_id, describe(error))

    def close(self) -> None:
        """Sign a last checkpoint."""
        if self.log is not None:
            self.log.close()
        self._write_due()


class Unsigned:
    """Stands in a journal that has signed records and was opened without keys: it can be read, and not written."""

    waits = False

    def seal(self, journal: Journal, plans: Sequence[Sealable]) -> None:
        """Raise ``JournalUnusable``."""
        raise JournalUnusable(
            f"{journal.url}: what is written to this journal is signed, and this gate was opened without its keys; "
            "open it with signing=…, or set INTERLOCK_SIGNING for the command line. Nothing was written"
        )

    def written(self, plans: Sequence[Sealable]) -> None:
        """Nothing was."""

    def clear(self, effect_id: str) -> str | None:
        """Nothing is sent."""
        return "this gate was opened without keys"


def _sends(plan: Sealable) -> bool:
    kinds = [entry.kind for entry in plan.entries]
    return kinds[-1] is Kind.DISPATCHED  # one that is followed by its end was made again from what was found


def _policy(witness: str | None, witnesses: Policy | str | os.PathLike[str] | None) -> Policy | None:
    if witness not in ("before", "after", None):
        raise DefinitionError(f"witness is 'before', 'after' or None, not {witness!r}")
    if witness is None or witnesses is None:
        if witness == "before":
            raise DefinitionError("witness='before' needs witnesses=, a policy that names them with their addresses")
        return None
    if isinstance(witnesses, Policy):
        policy = witnesses
    else:
        try:
            policy = parse_policy(Path(witnesses).read_bytes())
        except OSError as error:
            raise BadArguments(f"the policy {witnesses} cannot be read: {error.strerror}") from None
    if not set(policy.urls) & set(policy.witnesses):
        raise DefinitionError("the policy gives no witness an address; write: witness <name> <key> <url>")
    if witness == "before" and policy.quorum is None:
        raise DefinitionError("witness='before' needs a quorum in the policy; it says 'quorum none'")
    return policy


def _directory(path: str | os.PathLike[str] | None) -> Path | None:
    if path is None:
        return None
    directory = Path(path)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadArguments(f"receipts_dir {directory} cannot be made: {error.strerror}") from None
    return directory
