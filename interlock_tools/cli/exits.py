"""What an exit code of ``interlock`` means."""

from __future__ import annotations

DONE = 0
"""It was done, and nothing is left."""
ATTENTION = 1
"""It was done, and something stays open or needs a person."""
USAGE = 2
"""The command line was not understood; nothing was done."""
FAILED = 3
"""The journal or the application cannot be used here."""
NOT_POSSIBLE = 4
"""There is no such effect, or its state does not allow it."""

TABLE = """Exit codes: 0 done; 1 done, and something stays open or needs a person; 2 not understood; \
3 the journal or the application cannot be used; 4 no such effect, or its state does not allow it."""
