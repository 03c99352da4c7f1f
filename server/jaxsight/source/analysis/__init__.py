"""What executing code does to names, and its side effects, from the syntax alone."""
