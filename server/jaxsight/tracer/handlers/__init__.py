"""Handlers of requests to a tracer, and the table of them."""
