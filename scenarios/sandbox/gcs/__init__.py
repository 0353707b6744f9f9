"""The Google Cloud Storage sandbox: the JSON API for buckets, objects and their generations.

``store`` has the state and its rules, ``api`` the endpoints, ``uploads`` the three ways to send content, ``listing``
the pages. The ledger lists every generation that was ever written, also those of which the service itself keeps no
trace any more, and which one is live.

Left out: ACLs and IAM beyond denied permissions, customer-supplied keys, compose, holds and retention, soft delete,
lifecycle rules (a control call deletes generations instead), notifications, hierarchical namespaces, the XML API.
"""

from scenarios.sandbox.gcs.service import GcsService

SERVICE = GcsService

__all__ = ["SERVICE", "GcsService"]
