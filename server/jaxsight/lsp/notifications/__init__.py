"""What the server sends unasked: the engine's events, refreshes and progress."""
