"""The ``interlock`` command: looks at a journal, recovers, and lets a person settle what only a person can."""
