"""JX102: XLA folds constants for seconds or minutes while it compiles.

What may be folded is predicted from the traced program and then measured: the program is compiled
with and without constant folding. A finding reports the measurement; the prediction only names what
is folded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import constants
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import is_slow
from jaxsight.rules.rule import ALL, CompileTimes, Rule, Violation
from jaxsight.rules.text.expressions import keyword
from jaxsight.source.text import Edit
from jaxsight.text import units
from jaxsight.text.units import MIB

RULE = Rule(
    __name__,
    "Slow constant folding at compile time.",
    severity="warning",
    always=False,
    measures=CompileTimes.FOLDING,
)

SLOW = frozenset(
    {
        "sort", "top_k", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "scatter",
        "scatter-add", "scatter_add", "reduce_window", "reduce_window_sum", "conv_general_dilated",
    }
)  # fmt: skip
"""Operations that XLA's evaluator is so slow at that a fold of some size is an error (nanoseconds
in `tracer/programs/folding_costs.py`)."""
_SHARE = 0.1
"""Folds below this share of the longest are not counted: predictions are right to such a factor."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Report what folding was measured to cost, where it is predicted to take the longest."""
    measured, target = view.folding, view.target
    if measured is None or target is None or not view.folds or not is_slow(measured):
        return
    worst = max(view.folds, key=lambda fold: fold.seconds)
    further = sum(fold.seconds >= worst.seconds * _SHARE for fold in view.folds) - 1
    more = f" and {further} more" if further else ""
    least = "more than " if measured.is_ended else ""
    folded, unfolded = units.seconds(measured.folded), units.seconds(measured.unfolded)
    yield Violation(
        f"compiling for {target.short} takes {least}{folded} with constant folding, "
        f"{unfolded} without",
        worst.path,
        help="compute it once outside the function, pass an operand as an argument, or turn "
        "folding off with `compiler_options`",
        notes=(
            f"XLA folds {view.quoted(worst.path)} ({units.size(worst.bytes)}){more}",
            "both compile times were measured on this machine",
        ),
        data=worst.bytes,
        severity="error" if worst.primitive in SLOW else "",
    )


# The fix: compute a folded expression once at import, or turn constant folding off.
#
# The latter takes the option that JAX documents for it (jax-ml/jax#39786), at a `jax.jit` of the
# user's.

_PASSES = "xla_disable_hlo_passes"
_OPTION = f'{{"{_PASSES}": "constant_folding"}}'


# Seconds of compiling, for what is computed in each call.
@RULE.fixes(
    "the expression computed once, before the function; `compiler_options` of the function's "
    "`jax.jit`; `jnp` instead of `np`",
    timed=True,
    trades=ALL,
    costs_any=True,
)
def candidates(context: FixContext, size: int) -> Iterator[Candidate]:
    """Yield the expression computed at import, then without folding, then with `jnp`.

    Args:
        context: the finding.
        size: bytes of the result that is predicted to take the longest.
    """
    calls = context.find(ast.Call) if size < MIB else ()
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

    Return `None` if it is not a `jax.jit`, or its options are not a literal dictionary with some.
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
        return (context.with_keyword(decorator, f"compiler_options={_OPTION}"),)
    match options:
        case ast.Dict(keys=[*keys], values=[*_, last]) if all(
            isinstance(key, ast.Constant) and key.value != _PASSES for key in keys
        ):
            return (context.appended(last, f", {_OPTION[1:-1]}"),)
    return None
