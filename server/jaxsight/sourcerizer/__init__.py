"""Any JAX function as the text of a Python module that is the same program.

Runs in the user's interpreter: the standard library, NumPy and JAX only; private API of JAX's only
in `compat`; none in what is written.

How it works, in the order of the modules:

* `api` binds the arguments (`signature`), traces the function and has the jaxpr written.
* `writer` walks programs. A `Scope` is a function that is being written; `Writer` holds the module:
  shared functions (one per jitted function, written once for equal text), constants, names.
* An equation without programs inside is *spelled*: `rules` give candidate expressions (`exprs`),
  the best first: `view.PRETTY` if the style is pretty, then `view.LAX`, then the public function of
  the same name, then `bind` (`rules.bound`). The `prover` traces each candidate alone on the
  equation's own abstract inputs and takes the first that gives exactly that equation. So a rule may
  be hopeful, need not know versions of JAX, and cannot make the text wrong. What was proved is
  remembered by primitive, parameters and inputs.
* An equation with programs inside (`writer.STRUCTURES`: scan, cond, jit, custom_jvp …) is written
  by a rule that holds by construction: it writes the functions and gives the call.
* In the pretty style `folding` looks for equal runs of equations first, and puts a step in place of
  each: a helper function that is named after the user's, a Python loop. `rules.folded` writes them,
  `paths` says what of an argument is passed whole, `gathering` makes comprehensions of results.
  Where the text is not the same program in the end, it is written again without.
* `primal` is the program without rules for derivatives, which is what is written with
  `derivatives="primal"`.
* `module` holds the text as statements, so that passes may change them; `layout` makes lines of
  them as `ruff format` would.
* `interpreters.same` says whether two jaxprs are one program: `api.check` executes a written module
  and compares.

To add a primitive: try whether `by_name` or `bind` proves already (most do); else add a candidate
to the module of its group. To add an idiom: register it in `view.PRETTY` for the last primitive of
it.

What may never happen: text that was not proved, or built by a rule whose result `check` compares; a
value that changes; a name that shadows another that is used.
"""
