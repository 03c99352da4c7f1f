"""Makes a dataset: schedules shards, starts workers, survives their deaths, and keeps what is done.

Runs without JAX: workers have it.
"""
