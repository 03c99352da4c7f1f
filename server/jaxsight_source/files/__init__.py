"""Which files are ours."""
