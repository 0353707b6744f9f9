"""Gated tools in other frameworks. Each module needs its framework, and nothing here imports one before it is used.

``pydantic_ai``, ``openai_agents``, ``google_adk`` hand an agent a tool;
``temporal`` and ``dbos`` make the body of an activity or a step. In each the
request reference comes from the application's own context (dependencies, run
context, session state, workflow id), never from the model, and an outcome is a
value, never an error that a framework would answer with a retry.
"""
