"""Writes a program and its inputs as a standalone file."""
