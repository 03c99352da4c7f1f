"""Profiles of real runs: what is shown of them, as a report, as JSON, and in an editor."""
