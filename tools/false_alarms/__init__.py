"""Programs that run to their end in plain Python: each error that is shown in one is a false alarm."""
