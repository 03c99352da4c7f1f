"""What the fix of a rule builds on: the context of a finding, remedies, and figures."""
