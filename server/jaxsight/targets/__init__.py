"""Devices to compile for: their names, their figures, and the estimate of run times."""
