"""Passes over written statements that make them more readable."""
