"""What a user sets up: targets and their compilers, and what a file needs to be shown."""
