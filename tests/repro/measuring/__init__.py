"""What `python -m tests.repro` measures, a module for each table."""
