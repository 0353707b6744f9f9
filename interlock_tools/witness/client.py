"""Asks a witness for a cosignature: any that speaks C2SP ``tlog-witness``."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

from interlock_tools.receipts.checkpoint import cosigned_at, parse_checkpoint, parse_signed_checkpoint
from interlock_tools.receipts.errors import FormatError
from interlock_tools.receipts.keys import VerifierKey
from interlock_tools.receipts.note import Note, NoteSignature, parse_signature_lines

from .errors import WitnessAhead, WitnessDisagrees, WitnessRefused, WitnessUnreachable
from .wire import format_submission, origin_hash, parse_size

Prove = Callable[[int, int], Sequence[bytes]]
"""``(old, new)`` to the consistency proof of the log between those sizes."""

_MAX_ANSWER = 64 * 1024
_TRIES = 3


class WitnessClient:
    """One witness: where it is, and by which key it speaks.

    Args:
        url: the submission prefix; ``/add-checkpoint`` is appended.
        key: its cosignature key, as a policy holds it.
        timeout_s: for one request.
    """

    def __init__(self, url: str, key: VerifierKey, timeout_s: float = 10.0) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"a witness is reached by http or https, not {url!r}")
        self.url = url.rstrip("/")
        self.key = key
        self.timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_NoRedirect())

    def cosign(self, note: Note, prove: Prove, last_size: int = 0) -> tuple[NoteSignature, ...]:
        """Have a signed checkpoint cosigned, and learn whether the witness remembers another story.

        Args:
            note: the checkpoint, signed by the log.
            prove: makes consistency proofs of this log.
            last_size: the size that this witness cosigned last, as far as known.

        Returns:
            The witness's signature lines, verified.

        Raises:
            WitnessAhead: it has seen more records than the checkpoint has.
            WitnessDisagrees: it has seen another history.
            WitnessRefused: it does not know this log, or its answer does not verify.
            WitnessUnreachable: no answer; nothing is known.
        """
        checkpoint = parse_checkpoint(note.text)
        old = min(last_size, checkpoint.size)
        for _ in range(_TRIES):
            proof = prove(old, checkpoint.size) if 0 < old < checkpoint.size else ()
            status, body, retry = self._post("/add-checkpoint", format_submission(old, proof, note))
            if status == 200:
                return self._verified(note, body)
            if status != 409:
                raise self._refusal(status, body, retry)
            seen = self._size(body)
            if seen > checkpoint.size:
                raise WitnessAhead(self.key.name, seen, checkpoint.size)
            if seen == old:  # its size is ours and still it objects: another root (tlog-witness before v1.1)
                raise WitnessDisagrees(f"witness {self.key.name} has seen another log of {seen} records")
            old = seen
        raise WitnessUnreachable(f"witness {self.key.name} saw other checkpoints of this log meanwhile; try again")

    def seen(self, origin: str) -> Note | None:
        """Return the last checkpoint of a log that this witness cosigned, or None where it shows none.

        Not every witness shows it; ``cosign`` finds out from any.

        Raises:
            WitnessUnreachable: no answer.
            WitnessRefused: an answer that this witness did not sign.
        """
        status, body, retry = self._request("GET", f"/{origin_hash(origin)}/checkpoint", None)
        if status == 404:
            return None
        if status != 200:
            raise self._refusal(status, body, retry)
        try:
            checkpoint, note = parse_signed_checkpoint(body.decode("utf-8"))
            if checkpoint.origin == origin and cosigned_at(note, self.key) is not None:
                return note
        except (FormatError, UnicodeDecodeError):
            pass
        raise WitnessRefused(f"witness {self.key.name} shows a checkpoint that it did not cosign", status)

    def _verified(self, note: Note, body: bytes) -> tuple[NoteSignature, ...]:
        try:
            lines = parse_signature_lines(body.decode("utf-8"))
            answered = Note(note.text, lines)
            if cosigned_at(answered, self.key) is not None:
                return tuple(answered.of(self.key))
        except (FormatError, UnicodeDecodeError):
            pass
        raise WitnessRefused(f"witness {self.key.name} answered with something that is not its cosignature", 200)

    def _size(self, body: bytes) -> int:
        try:
            return parse_size(body)
        except FormatError as error:
            raise WitnessRefused(f"witness {self.key.name} answered 409 without a size: {error}", 409) from None

    def _refusal(self, status: int, body: bytes, retry: int | None) -> Exception:
        name = self.key.name
        if status == 422:
            return WitnessDisagrees(f"witness {name} has seen a history that this log does not extend")
        if status == 429 or status >= 500:
            return WitnessUnreachable(f"witness {name} answered {status}", retry)
        why = {
            403: "it does not trust the key that signed this log's checkpoint",
            404: "it does not know this log; ask its operator to add the log's key",
        }.get(status, "it did not accept the request")
        return WitnessRefused(f"witness {name} answered {status}: {why}", status)

    def _post(self, path: str, body: bytes) -> tuple[int, bytes, int | None]:
        return self._request("POST", path, body)

    def _request(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, int | None]:
        headers = {"Content-Type": "text/plain; charset=utf-8"} if body is not None else {}
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method=method)
        try:
            try:
                with self._opener.open(request, timeout=self.timeout_s) as answer:
                    return answer.status, _whole(answer), None
            except urllib.error.HTTPError as answer:
                with answer:
                    return answer.code, _whole(answer), _retry_after_s(answer.headers.get("Retry-After"))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise WitnessUnreachable(f"witness {self.key.name} cannot be reached ({type(error).__name__})") from None


def _whole(answer: Any) -> bytes:
    """Read a bounded answer. One that was cut off (the witness died in the middle) is no answer."""
    body: bytes = answer.read(_MAX_ANSWER)
    promised = answer.headers.get("Content-Length")
    if promised is not None and str(len(body)) != promised.strip():
        raise http.client.IncompleteRead(body)
    return body


def _retry_after_s(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 6 else None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A witness answers by itself; being sent elsewhere is a refusal."""

    def redirect_request(self, *arguments: Any, **keywords: Any) -> None:
        return None
