"""A program for several devices: its collectives, its shardings, and layouts of arrays."""
