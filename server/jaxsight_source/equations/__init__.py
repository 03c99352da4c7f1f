"""Equations as rules see them, the registries of rules, and spellings for any primitive."""
