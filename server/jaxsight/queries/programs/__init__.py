"""Programs: traced functions as plain data, and compiled for targets."""
