"""Asks Cloud Storage whether it agrees with a receipt.

Strong: a generation's number and content hash, which the service makes, and its
custom metadata while ``metageneration`` is 1, which means that nobody has
edited it since it was written. Weak: the metadata after that.
"""

from __future__ import annotations

import base64
from typing import Any

import google_crc32c
from google.cloud import storage

from interlock_tools.receipts.report import Carrier, ServiceFinding, Subject

from ..confirming import CannotTell, finding, other, text
from .client import gated_client, storage_from_environment
from .reading import EFFECT_ID, generations, read


def confirm(subject: Subject, client: storage.Client | None = None) -> ServiceFinding:
    """Ask Cloud Storage about an object that was written or restored.

    Args:
        subject: what the receipt is about.
        client: by default configured by the environment. Credentials that may only read are enough.

    Raises:
        CannotTell, GoogleAPICallError: the service cannot be asked, or does not tell.
    """
    client = gated_client(client) if client is not None else storage_from_environment()
    bucket, name = text(subject, "bucket"), text(subject, "name")
    evidence = subject.evidence if isinstance(subject.evidence, dict) else {}
    number = evidence.get("generation")
    if isinstance(number, int):
        blob = read(client, bucket, name, number)
        if blob is None:
            raise CannotTell(
                f"generation {number} of {bucket}/{name} is gone, as after a later write without versioning"
            )
        content = subject.payload.get("content")
        written = _crc32c(content) if isinstance(content, str) else blob.crc32c
        if blob.crc32c != evidence.get("crc32c") or blob.crc32c != written:
            return other(f"The content of generation {number} of {bucket}/{name} has another hash.")
        named, untouched = (blob.metadata or {}).get(EFFECT_ID), blob.metageneration == 1
        carrier = Carrier.STRONG if untouched else Carrier.WEAK
        if named != subject.effect_id:
            return other(f"Generation {number} of {bucket}/{name} names another effect or none.", carrier)
        since = "has not been edited since" if untouched else "may have been edited since"
        says = f"Generation {number} of {bucket}/{name} has this content and names this effect; its metadata {since}."
        return finding(subject, True, says, carrier)
    kept = generations(client, bucket, name)
    ours = [blob for blob in kept if (blob.metadata or {}).get(EFFECT_ID) == subject.effect_id]
    if ours:
        carrier = Carrier.STRONG if ours[0].metageneration == 1 else Carrier.WEAK
        return finding(subject, True, f"Generation {ours[0].generation} of {bucket}/{name} names this effect.", carrier)
    says = f"No generation of {bucket}/{name} that is still there names this effect."
    return finding(subject, False, says, Carrier.WEAK)


def _crc32c(content: str) -> str:
    made: Any = google_crc32c  # it has types for some of its names and not for others
    return base64.b64encode(made.Checksum(content.encode("utf-8")).digest()).decode("ascii")
