"""Which statements of a module run before a function is traced, and when they run again."""
