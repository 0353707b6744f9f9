"""Changing keys: a record in the log adds or retires a writer, or moves the log to another key.

Whoever verifies starts from the keys of a policy and follows these records, so
a policy goes on working after a change. Other processes of the journal must be
stopped while a key is changed, and started again afterwards: they would go on
with the old one.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import BadArguments
from ..journal.records import Seal
from ..receipts.build import seal_key_change
from ..receipts.keys import Signer, VerifierKey, parse_verifier_key, verifier_key
from ..receipts.record import KeyChange
from .front import Front
from .signing import new_key

_NUMBERED = re.compile(r"(.*)\.([0-9]{1,5})")


def rotate_writer(front: Front, signer: Signer | None = None) -> Path | None:
    """Let another key sign records from now on.

    Args:
        front: what signs.
        signer: the new key; by default one is made beside the others, and its file is returned.

    Raises:
        KeyUnusable: the keys are not kept in a directory, and no signer is given.
    """
    keys = front.keys
    assert keys is not None
    if signer is not None:
        _record(front, "add", "writer", verifier_key(signer))
        keys.writer = signer
        return None
    keys.require_directory()
    made, seed = new_key(_next(keys.writer.name))
    _record(front, "add", "writer", verifier_key(made))  # before the file: a process that finds it may sign with it
    return keys.add("writer", made, seed)


def retire_writer(front: Front, key: str) -> None:
    """Say that what a key signs from now on is not the writer's.

    Args:
        front: what signs.
        key: the verifier key, as it stands in a policy.

    Raises:
        FormatError: it is not a verifier key.
        BadArguments: it is the key that signs now.
    """
    retired = parse_verifier_key(key)
    if retired == verifier_key(front.writer()):
        raise BadArguments(f"{retired.name} signs now; let another key sign first (rotate)")
    _record(front, "retire", "writer", retired)


def move_log(front: Front, signer: Signer | None = None) -> Path | None:
    """Let another key sign checkpoints, in one that both sign. Both go on signing while the old key is there.

    Args:
        front: what signs.
        signer: the new key, of the log's name; by default one is made beside the others, and its file is returned.

    Raises:
        BadArguments: there is no log, or the key has another name.
        KeyUnusable: the keys are not kept in a directory, and no signer is given.
    """
    keys, log = front.keys, front.log
    assert keys is not None
    if log is None:
        raise BadArguments("there is no log key, so there is none to change")
    file = None
    seed = b""
    if signer is None:
        keys.require_directory()
        signer, seed = new_key(log.origin)
    elif signer.name != log.origin:
        raise BadArguments(f"the key of the log {log.origin!r} is called that, not {signer.name!r}")
    log.signers = [*log.signers, signer]  # from now on both sign, so also the first checkpoint after the record
    _record(front, "add", "log", verifier_key(signer))
    if seed:
        file = keys.add("log", signer, seed)  # type: ignore[arg-type]
    else:
        keys.logs.append(signer)
    log.flush()
    front.journal.records.keep_checkpoint()
    return file


def _record(front: Front, action: str, role: str, key: VerifierKey) -> None:
    change = KeyChange(action, role, key, front.journal.now().wall_ms)
    sealed = seal_key_change(change, front.writer())
    signature = sealed.envelope.signatures[0]
    stored = bytes.fromhex(signature.keyid) + signature.sig
    statement = sealed.envelope.payload.decode("utf-8")
    front.journal.records.add_key_change(Seal(sealed.hash, stored, None, statement))
    if front.log is not None:
        front.log.note(1)


def _next(name: str) -> str:
    found = _NUMBERED.fullmatch(name)
    return f"{found[1]}.{int(found[2]) + 1}" if found else f"{name}.2"
