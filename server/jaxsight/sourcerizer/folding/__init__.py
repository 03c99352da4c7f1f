"""Finds equal runs of equations, and replaces each with a step."""
