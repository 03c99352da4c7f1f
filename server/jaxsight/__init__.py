"""A language server for JAX, and its tools as functions.

The tracer imports this package in the user's Python, so this file must not import anything: its
functions import JAX on first use.

PYTEST_DONT_REWRITE: `record` and `report --run` import it before pytest, which would warn of that.
"""

__version__ = "0.1.0"

_LAZY = {
    "CannotCompile": "jaxsight.library.compiling",
    "ContractBroken": "jaxsight.library.contracts",
    "Difference": "jaxsight_source.jaxprs.same.difference",
    "CannotMeasure": "jaxsight.measuring.programs",
    "NotHere": "jaxsight.library.measuring",
    "ProgramChanged": "jaxsight.library.snapshots",
    "NotInvertible": "jaxsight_source",
    "assert_program": "jaxsight.library.snapshots",
    "expect": "jaxsight.library.contracts",
    "inverse": "jaxsight_source",
    "kernels": "jaxsight.library.kernels",
    "load_ipython_extension": "jaxsight.notebooks.magics",
    "measure": "jaxsight.library.measuring",
    "show": "jaxsight.notebooks.display",
    "sourcerize": "jaxsight_source",
    "sweep": "jaxsight.library.sweeps",
    "same_jaxpr": "jaxsight_source",
    "unload_ipython_extension": "jaxsight.notebooks.magics",
}


__all__ = ["__version__", *sorted(_LAZY)]  # noqa: PLE0604 - names that `__getattr__` provides


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)
