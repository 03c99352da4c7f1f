"""What rules see of a traced program, and what they find out from it."""
