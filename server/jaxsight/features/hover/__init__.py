"""Hovers: of a function with example inputs, of helpers, and of the expressions in both."""
