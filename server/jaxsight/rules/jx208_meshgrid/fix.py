"""Fix JX208: compute the axes of a grid where they are used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, keyword
from jaxsight.engine.fixes.remedy import Proof, Remedy
from jaxsight.engine.text import Edit, Range


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield frequencies computed from `arange`, which fuse, then `sparse=True`."""
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        if asked.called(call.func) != "jax.numpy.meshgrid" or not call.args:
            continue
        edits = [edit for each in _sources(asked, call) for edit in _counted(asked, each)]
        if edits:
            yield Candidate("Compute the frequencies from `arange`", tuple(edits))
        if keyword(call, "sparse") is None:
            last = asked.arguments(call)[-1].end
            yield Candidate("Make the grid sparse", (Edit(Range(last, last), ", sparse=True"),))
        return


def _sources(asked: Asked, call: ast.Call) -> Iterator[ast.Call]:
    """Yield the calls that compute the grid's axes: arguments, or what names are assigned."""
    function = asked.function(call)
    names = {each.id for each in call.args if isinstance(each, ast.Name)}
    yield from (each for each in call.args if isinstance(each, ast.Call))
    for node in ast.walk(function) if function is not None else ():
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as source) if (
                name in names
            ):
                yield source


def _counted(asked: Asked, source: ast.Call) -> Iterator[Edit]:
    """Write `fftfreq(n)` as `((arange(n) + n // 2) % n - n // 2) / n`."""
    if source.keywords or len(source.args) != 1:
        return
    size = asked.operand(source.args[0])
    match asked.called(source.func):
        case "jax.numpy.fft.fftfreq":
            half = f"{size} // 2"
            text = f"(({asked.jnp}.arange({size}) + {half}) % {size} - {half}) / {size}"
        case "jax.numpy.fft.rfftfreq":
            text = f"{asked.jnp}.arange({size} // 2 + 1) / {size}"
        case _:
            return
    yield asked.replace(source, asked.bracketed(source, text))


REMEDY = Remedy(
    "`arange` instead of `fftfreq`; `sparse=True`",
    candidates,
    proof=Proof.FEWER,
)
