"""The scenario suite: one agent step, several systems, real deaths, judged by what the service holds.

``model`` says what a scenario is, ``play`` plays one cell of it, ``worker`` is the agent's process, ``hand`` is what
the hand-written arms share, ``judging`` has the columns that all arms share, ``results`` writes what was measured.
The scenarios themselves are in ``scenarios.cases``.
"""
