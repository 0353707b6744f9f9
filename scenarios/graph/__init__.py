"""The crash suite with the real LangGraph: checkpointers, durability modes, kill points, ways to resume."""
