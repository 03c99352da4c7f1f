"""Private API of JAX that reports what is lowered and compiled."""
