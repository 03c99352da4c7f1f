"""Traces: questions about functions, the answers of tracers, and these in the current text."""
