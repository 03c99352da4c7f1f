"""How a function is called, and what that adds to its text: parameters, guards, decorators."""
