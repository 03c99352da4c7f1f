"""Writes a repro of a program that XLA or JAX dumped, without its Python source.

`choosing` finds the module that was being compiled in the folder of a crashed run, without JAX;
`emit` reads files of any format as a program, and writes and runs the repro.
"""
