"""Bytes to messages: the standard streams, and pygls' protocol with our changes."""
