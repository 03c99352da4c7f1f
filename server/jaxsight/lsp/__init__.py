"""The Language Server Protocol around the engine: pygls and lsprotocol live here and nowhere else.

Each feature has a module that converts a request into the engine's terms and the answer back, and
decides nothing.
"""
