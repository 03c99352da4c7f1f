"""Templates that compose transformations and functions."""
