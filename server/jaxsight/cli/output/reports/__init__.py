"""Findings in the formats of the terminal and of other tools.

Each module converts `Reported` to text, and does nothing else.
"""
