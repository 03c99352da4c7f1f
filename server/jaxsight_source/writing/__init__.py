"""Walks programs and writes them as functions of a module."""
