"""Fix JX102: compute a folded expression once at import, or turn constant folding off.

The latter takes the option that JAX documents for it (jax-ml/jax#39786), at a `jax.jit` of the
user's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import constants, figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx102_folded_while_compiling.rule import SlowFolding
from jaxsight.rules.text.expressions import keyword
from jaxsight.source.text import Edit, Position, Range
from jaxsight_source.units import MIB

_PASSES = "xla_disable_hlo_passes"
_OPTION = f'{{"{_PASSES}": "constant_folding"}}'


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the expression computed at import, then without folding, then with `jnp`."""
    folded = context.finding.data
    if not isinstance(folded, SlowFolding):
        return
    calls = context.find(ast.Call) if folded.bytes < MIB else ()
    for call in calls:
        called = context.called(call.func)
        if called.startswith("jax."):
            first = call.args[0] if call.args else None
            of = f"_of_{first.id}" if isinstance(first, ast.Name) else ""
            name = context.fresh(f"{called.rpartition('.')[2]}{of}".upper())
            yield from context.hoisted(call, name, f"Compute it once as `{name}`")
            break
    around = context.of_subject()  # inner functions accept no options
    for decorator in around.subject.decorator_list if around.subject is not None else ():
        if (edits := _with_option(around, decorator)) is not None:
            yield Candidate("Compute it on every call, by `compiler_options`", edits)
    yield from constants.by_jnp(context)


def _with_option(context: FixContext, decorator: ast.expr) -> tuple[Edit, ...] | None:
    """Return the edits that add the option to a decorator.

    Return `None` if it is not a `jax.jit`, or if its options are not a literal dictionary.
    """
    if not isinstance(decorator, ast.Call):
        if context.called(decorator) != "jax.jit":
            return None
        text = f"{context.partial}({context.text(decorator)}, compiler_options={_OPTION})"
        return (*context.functools_import(), context.replace(decorator, text))
    called = [context.called(node) for node in (decorator.func, *decorator.args[:1])]
    if called[0] != "jax.jit" and called != ["functools.partial", "jax.jit"]:
        return None
    options = keyword(decorator, "compiler_options")
    if options is None:
        places = context.arguments(decorator)
        end = context.range(decorator).end
        last = places[-1].end if places else Position(end.line, end.column - 1)
        comma = ", " if places else ""
        return (Edit(Range(last, last), f"{comma}compiler_options={_OPTION}"),)
    match options:
        case ast.Dict(keys=[*keys], values=[*values]) if all(
            isinstance(key, ast.Constant) and key.value != _PASSES for key in keys
        ):
            if not values:
                return (context.replace(options, _OPTION),)
            last = context.range(values[-1]).end
            return (Edit(Range(last, last), f", {_OPTION[1:-1]}"),)
    return None


# Seconds of compiling, for what is computed in each call.
REMEDY = Remedy(
    "the expression computed once, before the function; `compiler_options` of the function's "
    "`jax.jit`; `jnp` instead of `np`",
    candidates,
    timed=True,
    trades=figures.ALL,
    costs_any=True,
)
