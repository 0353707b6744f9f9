"""Witnesses: second parties that remember a log's last head, so that it cannot be rewritten unseen.

* ``client``: asks any C2SP ``tlog-witness`` for a cosignature
* ``gather``: asks all witnesses of a policy
* ``book``: what a witness remembers, and its rule: one history per log
* ``server``: a small witness to run elsewhere, one SQLite file
* ``wire``: the bytes between them
"""

from .client import WitnessClient
from .errors import WitnessAhead, WitnessDisagrees, WitnessError, WitnessRefused, WitnessUnreachable
from .gather import Gathered, clients_of, gather

__all__ = [
    "Gathered",
    "WitnessAhead",
    "WitnessClient",
    "WitnessDisagrees",
    "WitnessError",
    "WitnessRefused",
    "WitnessUnreachable",
    "clients_of",
    "gather",
]
