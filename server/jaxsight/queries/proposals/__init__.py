"""Propose example inputs: infer them from the text, and try them in a tracer."""
