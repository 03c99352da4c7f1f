"""Transfers between the host and the device, counted independently in programs that offload."""
