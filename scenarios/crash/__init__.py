"""The crash suite: real processes, real SIGKILLs, a real HTTP service, judged by what the service holds.

``python -m scenarios.crash --pairwise`` or ``--full``. A cell is one life of one effect:

* ``cells``: which cells there are, and how they are named
* ``contracts``: what the service promises in a cell
* ``oracle``: what the right answers are; it shares no code with the gate
* ``worker``: the agent's process
* ``lane``: carries cells out, one after another
* ``judge``: compares what happened with what is right
* ``special``: cells that are more than a death and a restart (a stopped sender, two restarts at once, …)
"""
