"""Example inputs from dry runs: programs of a project are run abstractly, for their calls."""
