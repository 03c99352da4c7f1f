"""JX442: say which arguments `vmap` does not map."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx442_mapped_axes.rule import InAxes


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the transformation with `in_axes=`, `None` for each scalar."""
    data = context.finding.data
    for call in context.find(ast.Call):
        if isinstance(data, InAxes) and isinstance(call.func, ast.Call):
            mapped = context.text(call.func)
            yield Candidate(
                f"Map with `in_axes={data.text}`",
                (context.replace(call.func, f"{mapped[:-1]}, in_axes={data.text})"),),
                same=False,
            )
            return


REMEDY = Remedy("`in_axes=` with `None` for scalars (unsafe)", candidates)
