"""Which integers the values of a traced program may be."""
