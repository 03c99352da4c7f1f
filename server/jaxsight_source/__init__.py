"""Writes any JAX function as the text of a Python module that is the same program, and proves it.

This package stands alone: it imports the standard library, NumPy and JAX only, in the user's Python
environment. Private API of JAX is used in `compat` only, and never in the written text.

Ten names are for users, and imported on first use:

* `sourcerize`, its `SourceOptions` and its result, a `Source`; `SourceError`, the base of what it
  raises;
* `program_of`: a program from a jaxpr, a stage of `jax.jit`, an `Exported`, a file, or text;
* `same_jaxpr`: the first difference of two jaxprs;
* `inverse`, `inverse_registry` and `NotInvertible`;
* `Interpreter`: runs a jaxpr with other values than arrays.

Packages beside this one also use the modules in these folders. Those in the first row use the
standard library only, for processes that never import JAX:

* `options`, `errors` and `files`;
* `api` has the parts of `sourcerize`: `traced`, `write_traced`, `written.Written`;
* `jaxprs` has the parts of interpreters (`base`, `forward`), `same`, and what is read of jaxprs
  alone; `folding` finds loops in them; `inversion` has rules for `inverse`;
* `compat` is all private API of JAX that these need, a module for each concern.

Only packages that write modules around functions (`jaxsight_repro`) use the others, which may
change. Of these, each imports only those above it:

* `text` has what `ast` lacks for Python text that is written: `exprs` and `statements` build its
  nodes, `layout` prints them as `ruff format` would; `names` has names and paths. It knows no
  equations.
* `values` spells values as expressions: parameters of equations (`spelling`), constant arrays,
  pytrees. An expression holds the module to import for each public name in it.
* `proof` traces a candidate expression alone on the equation's own abstract inputs, and accepts it
  only if that results in exactly that equation (`prover`). `running` runs the text beside the
  original.
* `equations` has what rules see of an equation (`view`, `idioms`), the registries of rules
  and candidates for any primitive (`registry`).
* `folding` finds equal runs of equations, in the pretty style, and replaces each with a step.
* `writing` walks programs. A `scope.Scope` is a function being written; `writer.Writer` holds the
  module: shared functions (one per jitted function, written once for equal text), constants,
  proofs, passed values.
* `rules` has the rules: `templates` for calls that need no code, `lax` and `pretty` for the two
  styles, `functions` for equations with inner programs, `steps` for what `folding` finds.
* `calls` reads the call of the original function: `signature`, static arguments, `jax.jit`.
* `passes` makes the statements more readable, and adds comments.
* `stablehlo` and `hlo` read programs as jaxprs; `stablehlo` proves that a text is lowered to it
  again.
* `programs` reads programs that were traced elsewhere as calls: jaxprs, stages of `jax.jit`,
  exported functions, files.

At the top, `api` binds the arguments and writes the program in the style that was asked for, or
else in a simpler one, until the text is proved; `module_text` writes the function that callers use,
and the text around it. `start` is a process that reads a program's file.

An equation without inner programs is *spelled*: rules yield candidate expressions, the best first:
`PRETTY` in the pretty style, then `LAX`, then the public function of the same name, then `bind`.
The first one that is proved is written. So a rule may be speculative, need not know versions of
JAX, and cannot make the text wrong. Proved expressions are cached by primitive, parameters and
inputs. An equation with inner programs (scan, cond, jit, custom_jvp …) is written by a rule of
`STRUCTURES` that is correct by construction: it writes the functions and returns the call. If a
folded text is not the same program in the end, it is written again without folding.

Never allowed: text that was neither proved nor built by a rule whose result `api` compares; a
value that changes; a name that shadows another name in use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxsight_source.api import program_of as program_of
    from jaxsight_source.api import sourcerize as sourcerize
    from jaxsight_source.errors import SourceError as SourceError
    from jaxsight_source.inversion.errors import NotInvertible as NotInvertible
    from jaxsight_source.inversion.transform import inverse as inverse
    from jaxsight_source.inversion.transform import inverse_registry as inverse_registry
    from jaxsight_source.jaxprs.forward import Interpreter as Interpreter
    from jaxsight_source.jaxprs.same.comparison import same_jaxpr as same_jaxpr
    from jaxsight_source.options import SourceOptions as SourceOptions
    from jaxsight_source.written import Source as Source

_HOMES = {
    "Interpreter": "jaxprs.forward",
    "NotInvertible": "inversion.errors",
    "Source": "written",
    "SourceError": "errors",
    "SourceOptions": "options",
    "inverse": "inversion.transform",
    "inverse_registry": "inversion.transform",
    "program_of": "api",
    "same_jaxpr": "jaxprs.same.comparison",
    "sourcerize": "api",
}
__all__ = list(_HOMES)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """Import a public name on first use: some modules are imported before JAX is, or without it."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
