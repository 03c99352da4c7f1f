"""What runs in the interpreter of the user: the standard library, numpy and JAX are all that it may
import.
"""
