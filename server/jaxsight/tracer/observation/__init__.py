"""Recording the values of expressions while a function is traced."""
