"""What runs programs for tasks, in a worker with the user's Python: never where scores are kept."""
