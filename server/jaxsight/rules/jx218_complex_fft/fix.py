"""Fix JX218: transform real numbers by `rfft`, and back by `irfft`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.source.text import Edit, Range

_MODULE = "jax.numpy.fft."
_FORWARD = ("fft", "fft2", "fftn")
_INVERSE = ("ifft", "ifft2", "ifftn")


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `rfft` for `fft`, and `irfft(…)` for `ifft(…).real`."""
    for call in context.find(ast.Call):
        name = context.called(call.func).removeprefix(_MODULE)
        if name in _FORWARD:
            yield Candidate(f"Use `r{name}`", _renamed(context, call))
            return
        if name in _INVERSE and len(call.args) == 1 and not call.keywords:
            yield from _pair(context, call, name)
            return


def _renamed(context: FixContext, call: ast.Call) -> tuple[Edit, ...]:
    """Return the edit that calls the function for real numbers."""
    if not isinstance(call.func, ast.Attribute):
        return ()
    name = call.func.attr
    real = f"ir{name[1:]}" if name.startswith("i") else f"r{name}"
    return (context.replace(call.func, f"{context.text(call.func.value)}.{real}"),)


def _pair(context: FixContext, call: ast.Call, name: str) -> Iterator[Candidate]:
    """Yield the inverse transform of real ones, where all of them are in its argument."""
    aval, outer = context.aval_of(call), context.parents.get(call)
    if isinstance(outer, ast.Attribute) and outer.attr == "real":
        expression: ast.expr = outer
    elif isinstance(outer, ast.Call) and context.called(outer.func) == "jax.numpy.real":
        expression = outer
    else:
        return
    inner = [
        node
        for node in ast.walk(call.args[0])
        if isinstance(node, ast.Call)
        and context.called(node.func).removeprefix(_MODULE) in _FORWARD
    ]
    if not inner or aval is None or not aval.shape or aval.shape[-1] % 2:
        return
    edits = [edit for node in (call, *inner) for edit in _renamed(context, node)]
    # The transform is real by itself: what takes its real part is dropped.
    around, within = context.range(expression), context.range(call)
    before = Edit(Range(around.start, within.start), "")
    after = Edit(Range(within.end, around.end), "")
    yield Candidate(f"Use `r{name[1:]}` and `ir{name[1:]}`", (*edits, before, after))


REMEDY = Remedy("`rfft` and `irfft` for real numbers", candidates)
