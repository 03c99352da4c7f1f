"""JX445: name the axis where it is mapped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.text.expressions import keyword

_AXIS = re.compile(r'axis_name="(\w+)"')


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the map with `axis_name=`."""
    axis = _AXIS.search(context.finding.help)
    function = context.node
    call = context.parents.get(function) if function is not None else None
    if axis is None or not isinstance(call, ast.Call) or call.func is not function:
        return
    named = keyword(call, "axis_name")
    edit = (
        context.replace(named, f'"{axis[1]}"')
        if named is not None
        else context.replace(call, f"{context.text(call)[:-1]}, {axis[0]})")
    )
    yield Candidate(f"Name the axis `{axis[1]}`", (edit,), same=False)


REMEDY = Remedy("the name of the axis where it is mapped (unsafe)", candidates)
