"""Drawings of kernel graphs as SVG, which need no program, script, font or file of others."""
