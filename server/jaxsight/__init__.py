"""A language server for JAX.

The tracer imports this package inside the user's interpreter, so this file must stay free of imports.
"""

__version__ = "0.1.0"
