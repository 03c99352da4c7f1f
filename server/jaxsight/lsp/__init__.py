"""Serve the engine over the Language Server Protocol.

pygls and lsprotocol are imported in this package and nowhere else.
Each feature has a module that converts a request into the engine's terms and converts the answer
back. It must never make a decision: what the protocol does not know belongs to `features`.
"""
