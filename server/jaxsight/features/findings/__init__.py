"""Findings: running the rules, and selecting what is reported."""
