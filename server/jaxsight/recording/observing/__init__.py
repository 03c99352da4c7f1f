"""Observe the calls of a process; all but `log.py` runs in the user's Python only."""
