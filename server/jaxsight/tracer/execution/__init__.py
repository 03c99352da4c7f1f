"""Execution of a file's chunks in a namespace of its own, and reuse of their results."""
