"""The pure core: what state an effect is in and what may be done next.

Nothing here reads a clock, a file, a socket or a random number, and nothing
here imports from the packages above it. Everything is a function from values
to values, so that running, recovery, the verifier and the exhaustive
exploration in the tests all use the very same code.

* ``canonical``: allowed values, their one byte form, digests and effect ids
* ``entries``: what a journal holds
* ``states``: one ``step(state, entry)`` and the transition table
* ``decide``: ``observe`` and ``next_step``, the rules of recovery
"""
