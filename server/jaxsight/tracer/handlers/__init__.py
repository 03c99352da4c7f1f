"""One module for each request to a tracer, and the table of them."""
