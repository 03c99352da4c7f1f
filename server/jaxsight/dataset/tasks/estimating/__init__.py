"""Estimates of what XLA makes of programs, without compiling them."""
