"""Waves: a project whose functions are mined by tests."""
