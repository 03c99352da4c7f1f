"""Processes: starting, watching, killing and replacing them, and the wire that they speak on."""
