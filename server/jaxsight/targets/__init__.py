"""Devices to compile for: their names, their figures, and the estimate of run times.

Figures of chips are data with their sources. This package must never start a process or open a
device: that of this machine is known by what its driver publishes as files (`own/`).
"""
