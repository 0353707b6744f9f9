"""Seeded random schedules through the real gate and the real SQLite journal, on a clock and a service of our own.

``python -m scenarios.random_run --schedules 2000 --seed 1``. Processes are simulated: each has a journal object, a
session and a lock of its own, and is driven one step of its flows at a time, so that it can be left for dead between
any two steps. A schedule that goes wrong prints the one command that repeats it.

* ``world``: the service, and requests on their way to it
* ``machine``: the clock, the processes and what they run
* ``schedule``: what happens next, drawn from the seed
* ``checks``: what must hold at every moment and in the end
"""
