"""Commands that print figures of functions: estimated, measured, over sizes, of real runs."""
