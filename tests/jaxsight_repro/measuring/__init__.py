"""What `python -m tests.jaxsight_repro` measures, a module for each table."""
