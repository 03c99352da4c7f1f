"""What makes the server start fast, and what observes it while it runs."""
