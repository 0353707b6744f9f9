"""What a witness remembers: for each log the last head it agreed to, in one SQLite file.

The rule is one history per log. A head is cosigned only if it is the remembered
one, or proven to extend it; and the new head is durable before its cosignature
exists, so that no kill at any instant leaves a signature over something that
was forgotten. What remains: a witness whose file is lost or restored from a
backup has forgotten. It is retired, never started again under the same key, so
opening a file that is not there is refused.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from interlock_tools.receipts.checkpoint import Checkpoint, cosign, parse_signed_checkpoint
from interlock_tools.receipts.errors import FormatError
from interlock_tools.receipts.keys import COSIGNATURE, NOTE_SIGNATURE, Signer, parse_verifier_key, verifier_key
from interlock_tools.receipts.merkle import verify_consistency
from interlock_tools.receipts.note import Note, note_signed_by

from .errors import WitnessUnusable
from .wire import SIZE_TYPE, Submission, format_size, origin_hash, parse_submission

_FORMAT = 1
_MAX_EVIDENCE = 100

_SCHEMA = """
create table witness (format integer not null, key text not null);
-- logs that are known here, one row for each key that may sign for one
create table log_key (origin text not null, key text not null, primary key (origin, key));
-- the last head of each log: note is the signed checkpoint, at the time of its last cosignature (UTC seconds)
create table head (
    origin text primary key, hash text not null unique, size integer not null,
    note text not null, cosigned_s integer not null
);
-- checkpoints that a log signed and that do not belong to its history here
create table evidence (origin text not null, request blob not null);
"""

_UPSERT_HEAD = """
insert into head (origin, hash, size, note, cosigned_s) values (?, ?, ?, ?, ?)
on conflict (origin) do update set size = excluded.size, note = excluded.note, cosigned_s = excluded.cosigned_s
"""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class WitnessBook:
    """One witness's memory and its key.

    Args:
        path: the SQLite file; ``create`` makes it.
        signer: the witness's key.
        now_s: the clock, UTC seconds.
    """

    def __init__(self, path: str | Path, signer: Signer, now_s: Callable[[], int]) -> None:
        if not Path(path).is_file():
            raise WitnessUnusable(
                f"there is no witness database at {path}. Make one for a new key; if this key has cosigned before and "
                "its database is lost, retire the key and tell those who trust it"
            )
        self.signer = signer
        self.key = verifier_key(signer, COSIGNATURE)
        self._now_s = now_s
        self._lock = threading.Lock()
        try:
            self._database = _connect(path)
            row = self._database.execute("select format, key from witness").fetchone()
        except sqlite3.Error as error:
            raise WitnessUnusable(f"{path} is not a witness database that can be used: {error}") from None
        if row is None or row[0] != _FORMAT or row[1] != str(self.key):
            raise WitnessUnusable(f"{path} belongs to another witness key, or to another version of this program")

    @staticmethod
    def create(path: str | Path, signer: Signer) -> None:
        """Make the database of a new witness. When it has returned, the file is durable.

        Raises:
            WitnessUnusable: there is a file already.
        """
        if Path(path).exists():
            raise WitnessUnusable(f"{path} exists; a witness keeps its database for as long as its key")
        database = _connect(path)
        database.execute("begin immediate")
        for statement in _SCHEMA.split(";"):
            database.execute(statement)
        database.execute("insert into witness values (?, ?)", (_FORMAT, str(verifier_key(signer, COSIGNATURE))))
        database.execute("commit")
        database.close()

    def add_log(self, key_text: str) -> str:
        """Know a log by its verifier key, and by a second one of the same name when it moves. Returns its origin.

        Raises:
            FormatError: not a verifier key for notes.
        """
        key = parse_verifier_key(key_text, (NOTE_SIGNATURE,))
        with self._lock, self._database as database:
            database.execute("insert or ignore into log_key values (?, ?)", (key.name, str(key)))
        return key.name

    def remove_log_key(self, key_text: str) -> None:
        """No longer accept a log's key. What was seen of the log is remembered."""
        with self._lock, self._database as database:
            database.execute("delete from log_key where key = ?", (key_text,))

    def add_checkpoint(self, body: bytes) -> Response:
        """Answer ``add-checkpoint``.

        When a cosignature is returned, the head that it is over is durable. If
        the process dies before it returns, the head is durable or not, and no
        signature exists over one that is not.

        Answers 400 for what is malformed, 404 for a log that is not known, 403
        for a checkpoint that none of its keys signed, 409 with the remembered
        size where ``old`` is another, 422 where the proof does not lead from
        the remembered head to this one, 503 where the clock is behind the last
        cosignature or the database fails.
        """
        try:
            submission = parse_submission(body)
        except FormatError as error:
            return _say(400, str(error))
        with self._lock:
            try:
                refusal, time_s = self._remember(submission, body)
            except sqlite3.Error:
                return _say(503, "the witness cannot write its database")
        if refusal is not None:
            return refusal
        line = cosign(submission.note.text, self.signer, time_s)
        return Response(200, f"{line}\n".encode())

    def _remember(self, submission: Submission, body: bytes) -> tuple[Response | None, int]:
        """Make the submitted head the remembered one, durably, or return why not."""
        database = self._database
        database.execute("begin immediate")
        try:
            refusal, second_history = self._judge(submission)
            time_s, point = self._now_s(), submission.checkpoint
            if refusal is None and self._last_s(point.origin) > time_s:
                refusal = _say(503, "the witness's clock is behind its last cosignature")
            if refusal is None:
                note = str(self._log_signed(submission))
                values = (point.origin, origin_hash(point.origin), point.size, note, time_s)
                database.execute(_UPSERT_HEAD, values)
            elif second_history:
                self._keep_evidence(point.origin, body)
            database.execute("commit")
        finally:
            if database.in_transaction:
                database.execute("rollback")
        return refusal, time_s

    def _judge(self, submission: Submission) -> tuple[Response | None, bool]:
        """Why a submission is refused, in the specification's order; and whether it shows a second history."""
        point = submission.checkpoint
        if not self._keys(point.origin):
            return _say(404, "this log is not known here"), False
        try:
            if not self._log_signed(submission).signatures:
                return _say(403, "no key that is known of this log signed the checkpoint"), False
        except FormatError as error:
            return _say(403, str(error)), False
        if submission.old > point.size:
            return _say(400, "the old size is larger than the checkpoint's"), False
        head = self._head(point.origin)
        size = head.size if head is not None else 0
        if submission.old != size:
            second = head is not None and size == point.size and head.root != point.root
            return Response(409, format_size(size), SIZE_TYPE), second
        if size == 0 or head is None:
            if submission.proof:
                return _say(422, "a proof from the empty log has no hashes"), False
            return None, False
        if not verify_consistency(size, point.size, head.root, point.root, submission.proof):
            return _say(422, "the checkpoint does not extend the one that this witness has seen"), True
        return None, False

    def _keys(self, origin: str) -> list[str]:
        rows = self._database.execute("select key from log_key where origin = ?", (origin,))
        return [row[0] for row in rows]

    def _log_signed(self, submission: Submission) -> Note:
        """The submitted note with its log's verified signatures alone. Raises ``FormatError`` where one is wrong."""
        note = submission.note
        keys = [parse_verifier_key(text) for text in self._keys(submission.checkpoint.origin)]
        lines = [line for key in keys if note_signed_by(note, key) for line in note.of(key)[:1]]
        return Note(note.text, tuple(lines))

    def _head(self, origin: str) -> Checkpoint | None:
        row = self._database.execute("select note from head where origin = ?", (origin,)).fetchone()
        return parse_signed_checkpoint(row[0])[0] if row is not None else None

    def _last_s(self, origin: str) -> int:
        row = self._database.execute("select cosigned_s from head where origin = ?", (origin,)).fetchone()
        return int(row[0]) if row is not None else 0

    def _keep_evidence(self, origin: str, body: bytes) -> None:
        kept = self._database.execute("select count(*) from evidence where origin = ?", (origin,)).fetchone()[0]
        if kept < _MAX_EVIDENCE:
            self._database.execute("insert into evidence values (?, ?)", (origin, body))

    def checkpoint(self, hashed_origin: str) -> Response:
        """Answer the monitoring request: the last cosigned head of a log, by the SHA-256 of its origin."""
        with self._lock:
            row = self._database.execute(
                "select note, cosigned_s from head where hash = ?", (hashed_origin,)
            ).fetchone()
        if row is None:
            return _say(404, "nothing was cosigned for this log")
        _, note = parse_signed_checkpoint(row[0])
        shown = note.with_signatures([cosign(note.text, self.signer, row[1])])
        return Response(200, str(shown).encode("utf-8"))

    def heads(self) -> list[Checkpoint]:
        """Return the last head of every log."""
        with self._lock:
            rows = self._database.execute("select note from head order by origin").fetchall()
        return [parse_signed_checkpoint(row[0])[0] for row in rows]

    def evidence(self, origin: str) -> list[bytes]:
        """Return requests, signed by the log itself, that do not belong to the history seen here."""
        with self._lock:
            rows = self._database.execute("select request from evidence where origin = ?", (origin,)).fetchall()
        return [bytes(row[0]) for row in rows]

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()


def _connect(path: str | Path) -> sqlite3.Connection:
    """Open the file so that a commit is on the disk, directory entry included, before it returns."""
    database = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    database.execute("pragma journal_mode = delete")
    database.execute("pragma synchronous = extra")
    return database


def _say(status: int, words: str) -> Response:
    return Response(status, f"{words}\n".encode())
