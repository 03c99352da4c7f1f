"""Runs a program, and keeps what it is about to trace, compile or run."""
