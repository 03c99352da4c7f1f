"""Requests and notifications of the client: a module per feature, which makes no decisions.

Each converts parameters to the engine's terms, and the engine's answer back.
"""
