"""Which numbers the values of a traced program may be."""
