"""What rules read off a traced program."""
