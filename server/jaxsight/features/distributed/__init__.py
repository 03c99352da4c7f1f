"""Functions on several devices: their shardings and collectives, in words and pictures."""
