"""Inlay hints, one module for each kind."""
