"""Dumps of public reports, rebuilt: do they become running JAX source?"""
