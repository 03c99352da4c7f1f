"""The kinds of failure that `--check` names."""
