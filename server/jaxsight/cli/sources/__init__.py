"""The texts that a command works on: Python files, notebooks, and stdin."""
