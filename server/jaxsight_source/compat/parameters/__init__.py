"""What parameters of equations hold, read from private JAX API."""
