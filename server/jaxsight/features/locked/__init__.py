"""Functions as `jaxsight.lock` has them, and what differs from it."""
