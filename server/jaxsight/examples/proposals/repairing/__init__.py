"""Change proposals that could not be traced: what an error says of kinds, shapes and functions."""
