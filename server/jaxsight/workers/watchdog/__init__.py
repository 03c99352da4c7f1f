"""The process between the server and a tracer, which ends whatever the tracer starts."""
