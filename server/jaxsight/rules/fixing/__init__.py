"""What the `fix.py` of a rule builds on: the context of a finding, remedies, and figures."""
