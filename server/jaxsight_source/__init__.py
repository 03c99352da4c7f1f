"""Writes any JAX function as the text of a Python module that is the same program.

This package runs in the user's Python environment: it imports the standard library, NumPy and JAX
only. Private API of JAX is used in `compat` only, and never in the written text.

The folders, of which each imports only those above it:

* `text` has Python text as trees: `exprs`, `statements`, their `layout` as `ruff format` would do
  it, `walks` over them, and `names`; `formatting` lays out the text of others. It knows no
  equations.
* `values` spells values as expressions: parameters of equations (`spelling`), constant arrays,
  pytrees. An expression holds the module to import for each public name in it.
* `proof` traces a candidate expression alone on the equation's own abstract inputs, and accepts it
  only if that results in exactly that equation (`prover`). `running` runs the text beside the
  original.
* `equations` has what rules see of an equation (`view`, `idioms`), the registries of rules
  (`registry`), and candidates for any primitive (`fallback`).
* `folding` finds equal runs of equations, in the pretty style, and replaces each with a step.
* `writing` walks programs. A `scope.Scope` is a function being written; `writer.Writer` holds the
  module: shared functions (one per jitted function, written once for equal text), constants,
  proofs, passed values.
* `rules` has the rules: `templates` for calls that need no code, `lax` and `pretty` for the two
  styles, `functions` for equations with inner programs, `steps` for what `folding` finds.
* `calls` reads the call of the original function: `signature`, static arguments, `jax.jit`.
* `passes` makes the statements more readable, and adds comments.
* `stablehlo` reads StableHLO as a jaxpr, and proves that a text is lowered to it again.
* `programs` reads programs that were traced elsewhere as calls: jaxprs, stages of `jax.jit`,
  exported functions, files.

At the top, `api` binds the arguments, `attempts` writes the program in the style that was asked
for, or else in a simpler one, until the text is proved, `main_function` writes the function that
callers use, and `module_text` the text around it. `interpreters.same` compares two jaxprs.

Other packages write a function with `api.write`, and execute or compare the result with `written`;
`text.formatting.formatted` prints their own Python text. `repro` writes modules around the
functions: it uses `text` and `values`, rules of its own (`equations.registry`, `writing.scope`) and
`main_function`.

An equation without inner programs is *spelled*: rules yield candidate expressions, the best first:
`PRETTY` in the pretty style, then `LAX`, then the public function of the same name, then `bind`.
The first one that is proved is written. So a rule may be speculative, need not know versions of
JAX, and cannot make the text wrong. Proved expressions are cached by primitive, parameters and
inputs. An equation with inner programs (scan, cond, jit, custom_jvp …) is written by a rule of
`STRUCTURES` that is correct by construction: it writes the functions and returns the call. If a
folded text is not the same program in the end, it is written again without folding.

Never allowed: text that was neither proved nor built by a rule whose result `api.check` compares; a
value that changes; a name that shadows another name in use.
"""
