"""`jaxsight report`: collects what a report has, and leaves out who made it."""
