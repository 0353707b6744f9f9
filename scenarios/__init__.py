"""Scenarios: agents that are killed at the worst moment, judged by what the service ended up holding."""
