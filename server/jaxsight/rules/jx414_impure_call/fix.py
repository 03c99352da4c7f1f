"""JX414: print values when the function runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx414_impure_call.printing import debug_print
from jaxsight.rules.jx414_impure_call.rule import Impure


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `jax.debug.print` in place of a `print`."""
    impure = context.finding.data
    call = next(iter(context.nodes), None)
    if isinstance(call, ast.Expr):
        call = call.value
    if not isinstance(impure, Impure) or impure.kind not in ("print", "text"):
        return
    if not isinstance(call, ast.Call) or context.called(call.func) != "print":
        return
    jax = context.imports.get("jax", "jax")
    text = debug_print(call, context.text, f"{jax}.debug.print")
    if text is not None:
        title = f"Print each time with `{jax}.debug.print`"
        edits = (*context.jax_import(), context.replace(call, text))
        yield Candidate(title, edits, safe=False, same=False)


REMEDY = Remedy.correcting("`jax.debug.print` instead of `print` (unsafe)", candidates)
