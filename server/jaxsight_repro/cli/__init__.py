"""The command `jaxsight repro`, and the processes that it waits for."""
