"""Signing what a journal records: keys, records in the journal's own transaction, checkpoints, receipts.

* ``signing``: which keys, and where they are kept
* ``sealer``: makes the records of entries; what a journal calls
* ``log``: signs checkpoints, has witnesses cosign them, and asks them what they remember
* ``issue``: the receipt of an effect
* ``reconcile``: after records were lost
"""

from .log import Log
from .sealer import Sealer
from .signing import Keys, Signing

__all__ = ["Keys", "Log", "Sealer", "Signing"]
