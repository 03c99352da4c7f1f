"""What jaxsight has to say about a function: one module per diagnostic code, all pure functions over plain data."""
