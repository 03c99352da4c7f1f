"""Comparing functions by the results of running them."""
