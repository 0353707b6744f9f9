"""The story around ``refund_agent.py``: who kills the agent, what happens meanwhile, and who judges it."""
