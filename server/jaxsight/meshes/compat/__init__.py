"""Private and versioned API of JAX about meshes and shardings."""
