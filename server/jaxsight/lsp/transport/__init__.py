"""Bytes to messages: the standard streams, and HTTP for the panel's page."""
