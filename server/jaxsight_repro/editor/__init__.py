"""Repros of functions with example inputs: extracted and reduced in processes of their own."""
