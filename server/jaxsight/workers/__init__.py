"""Processes: start, monitor, kill and replace them, and exchange messages with them."""
