"""Drawings of kernel graphs as SVG.

They must never need a program, script, font or file of others, nor the network: a picture is one
text, which shows the same wherever it is opened.
"""
