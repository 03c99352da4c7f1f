"""One module for each request to a tracer, and what several of them use."""
