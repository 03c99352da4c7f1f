"""Fix JX208: compute the axes of a grid where they are used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Proof, Remedy
from jaxsight.rules.text.expressions import keyword
from jaxsight.source.text import Edit, Range


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield frequencies computed from `arange`, which fuse, then `sparse=True`."""
    for call in context.find(ast.Call):
        if context.called(call.func) != "jax.numpy.meshgrid" or not call.args:
            continue
        edits = [edit for array in _sources(context, call) for edit in _counted(context, array)]
        if edits:
            yield Candidate("Compute the frequencies from `arange`", tuple(edits))
        if keyword(call, "sparse") is None:
            last = context.arguments(call)[-1].end
            yield Candidate("Make the grid sparse", (Edit(Range(last, last), ", sparse=True"),))
        return


def _sources(context: FixContext, call: ast.Call) -> Iterator[ast.Call]:
    """Yield the calls that compute the grid's axes: arguments, or what names are assigned."""
    function = context.function(call)
    names = {argument.id for argument in call.args if isinstance(argument, ast.Name)}
    yield from (argument for argument in call.args if isinstance(argument, ast.Call))
    for node in ast.walk(function) if function is not None else ():
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as source) if (
                name in names
            ):
                yield source


def _counted(context: FixContext, source: ast.Call) -> Iterator[Edit]:
    """Write `fftfreq(n)` as `((arange(n) + n // 2) % n - n // 2) / n`."""
    if source.keywords or len(source.args) != 1:
        return
    size = context.operand(source.args[0])
    match context.called(source.func):
        case "jax.numpy.fft.fftfreq":
            half = f"{size} // 2"
            text = f"(({context.jnp}.arange({size}) + {half}) % {size} - {half}) / {size}"
        case "jax.numpy.fft.rfftfreq":
            text = f"{context.jnp}.arange({size} // 2 + 1) / {size}"
        case _:
            return
    yield context.replace(source, context.bracketed(source, text))


REMEDY = Remedy(
    "`arange` instead of `fftfreq`; `sparse=True`",
    candidates,
    proof=Proof.FEWER,
)
