"""A call of a user's function: its example inputs, its results, and the state that it updates."""
