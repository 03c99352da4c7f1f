"""A file's changes to the process: they are recorded, undone and repeated."""
