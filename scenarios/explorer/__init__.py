"""An explicit-state model checker for the protocol, over the production core.

Every reachable state of a small world is visited: workers that journal, send
and recover by the functions in ``interlock_tools.core``; a service that applies
requests late, twice or never and answers badly or not at all; processes that
die or stop anywhere; facts that move; clocks that pass the dedup window. In
each state the invariants are checked against what the service really did.

``python -m scenarios.explorer --help`` says how to run it.
"""
