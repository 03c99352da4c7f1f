"""Python text as trees: expressions, statements, names and their layout. Knows no equations."""
