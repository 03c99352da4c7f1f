"""Collectives and shardings of programs for several devices, counted in other ways than the
product's.
"""
