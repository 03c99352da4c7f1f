"""`jaxsight sourcerize` of program files, and of functions in other languages than Python."""
