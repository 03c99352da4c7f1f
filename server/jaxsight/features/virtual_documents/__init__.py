"""Virtual documents: programs and source of functions, read-only in an editor."""
