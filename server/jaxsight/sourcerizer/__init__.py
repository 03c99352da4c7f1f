"""Writes any JAX function as the text of a Python module that is the same program.

This package runs in the user's Python environment: it imports the standard library, NumPy and JAX
only. Private API of JAX is used in `compat` only, and never in the written text.

How it works, in the order of the modules:

* `api` binds the arguments (`signature`), traces the function and has the jaxpr written.
* `writer` walks programs. A `Scope` is a function being written; `Writer` holds the module: shared
  functions (one per jitted function, written once for equal text), constants, names.
* An equation without inner programs is *spelled*: `rules` yield candidate expressions (`exprs`),
  the best first: `view.PRETTY` in the pretty style, then `view.LAX`, then the public function of
  the same name, then `bind` (`rules.bound`). The `prover` traces each candidate alone on the
  equation's own abstract inputs and takes the first that results in exactly that equation. So a
  rule may be speculative, need not know versions of JAX, and cannot make the text wrong. Proved
  expressions are cached by primitive, parameters and inputs.
* An equation with inner programs (`writer.STRUCTURES`: scan, cond, jit, custom_jvp …) is written by
  a rule that is correct by construction: it writes the functions and returns the call.
* In the pretty style, `folding` first finds equal runs of equations and replaces each with a step:
  a helper function named after the user's, or a Python loop. `rules.folded` writes them, `paths`
  finds the part of an argument to pass as a whole, `gathering` makes comprehensions of results. If
  the text is not the same program in the end, it is written again without folding.
* `primal` is the program without derivative rules, which is written with `derivatives="primal"`.
* `module` holds the text as statements, so that passes can change them; `layout` turns them into
  lines as `ruff format` would.
* `interpreters.same` compares two jaxprs: `api.check` executes a written module and compares.

To add a primitive: try whether `by_name` or `bind` already proves it (most do); else add a
candidate to the module of its group. To add an idiom: register it in `view.PRETTY` for its last
primitive.

Never allowed: text that was neither proved nor built by a rule whose result `check` compares; a
value that changes; a name that shadows another name in use.
"""
