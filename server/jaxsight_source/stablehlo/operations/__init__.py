"""One function per operation: its counterpart in JAX."""
