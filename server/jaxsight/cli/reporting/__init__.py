"""`jaxsight report`: collects what a report has."""
