"""JX208: a grid of coordinates that is stored, as a sparse one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, keyword
from jaxsight.engine.text import Edit, Range

CODE = "JX208"


def candidates(asked: Asked) -> Iterator[Candidate]:
    """`sparse=True`: axes that broadcast where they are used."""
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        if asked.called(call.func) == "jax.numpy.meshgrid" and call.args:
            if keyword(call, "sparse") is not None:
                return
            last = asked.arguments(call)[-1].end
            yield Candidate("Make the grid sparse", (Edit(Range(last, last), ", sparse=True"),))
            return
