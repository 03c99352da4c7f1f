"""Files: reading those of unknown origin, and storing jaxsight's own."""
