"""Queries about functions: they are asked once, cached by key, and located in the current text."""
