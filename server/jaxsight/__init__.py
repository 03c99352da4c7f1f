"""A language server for JAX, and the tools behind it as functions.

The tracer imports this package inside the user's interpreter, so this file must stay free of
imports: what it offers brings JAX when it is first asked for.
"""

__version__ = "0.1.0"

_LAZY = {
    "CannotCompile": "jaxsight.compiler.api",
    "ContractBroken": "jaxsight.compiler.api",
    "Difference": "jaxsight.interpreters.same",
    "NotInvertible": "jaxsight.interpreters.inversion.errors",
    "expect": "jaxsight.compiler.api",
    "inverse": "jaxsight.interpreters.inversion.transform",
    "kernels": "jaxsight.compiler.api",
    "sourcerize": "jaxsight.sourcerizer.api",
    "same_jaxpr": "jaxsight.interpreters.same",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)
