"""The commands, one module each: its options, its help (the docstring) and its work."""
