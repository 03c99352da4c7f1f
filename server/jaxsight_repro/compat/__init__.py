"""Private API of JAX, a module for each concern."""
