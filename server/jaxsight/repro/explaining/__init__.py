"""Tabulates under which flags, versions and targets a repro fails."""
