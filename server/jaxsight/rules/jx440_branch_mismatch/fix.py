"""JX440: write a float where a branch returns an integer literal."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx440_branch_mismatch.rule import BranchTypes


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the call with `0.0` for a branch `lambda: 0`, where the other returns a float."""
    data = context.finding.data
    if not isinstance(data, BranchTypes) or "float" not in data.first + data.second:
        return
    for call in context.find(ast.Call):
        for branch in call.args:
            match branch:
                case ast.Lambda(body=ast.Constant(value=int() as value) as body):
                    if type(value) is int:
                        edit = context.replace(body, f"{value}.0")
                        yield Candidate(f"Return `{value}.0`", (edit,), same=False)
                        return


REMEDY = Remedy("a float literal in a branch (unsafe)", candidates)
