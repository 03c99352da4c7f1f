"""Captures what a program does with JAX, writes it as one file, and reduces it.

What captures, emits and reduces runs in the user's Python environment and imports the standard
library, NumPy and JAX only. What does not import JAX (`failures`, `running`, `checks`,
`processes`) also runs in the server's.

The folders, of which each imports only those above it:

* `failures` says how a program failed, and whether two failures are the same; `running` runs a
  file in a fresh process, with limits, and observes its failure.
* `compat` has the private API of JAX, a module for each concern.
* `capturing` runs a program and keeps what is about to be traced, compiled or run in a folder, the
  **case**: written before it happens, so that it survives the process.
* `checks` has the kinds of failure that `--check` names, one module each.
* `emit` writes a program and its inputs as a **repro**: a standalone file of public JAX and NumPy
  that fails as the program failed.
* `reducing` makes a repro smaller while its check holds.

A repro defines `inputs()`, which returns the arguments of `main`, and `main(*arguments)`; run as a
script, it fails if and only if it reproduces the failure. `jaxsight_repro.capture()` is a context
that writes a repro of the exception that leaves it. This package must never change what the program
computes while it captures, or call a repro what was not seen to fail again.
"""

from __future__ import annotations

_LAZY = {"capture": "jaxsight_repro.context"}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)
