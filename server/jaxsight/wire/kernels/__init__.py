"""What is known of one kernel of a graph."""
