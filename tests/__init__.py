"""The tests: `python -m unittest` runs them all."""
