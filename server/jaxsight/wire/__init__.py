"""What processes share: messages, their frames, and the data in them. Standard library only."""
