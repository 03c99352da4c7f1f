"""JX334: derive another key with `fold_in`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx334_key_as_array.rule import FoldedKey


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `jax.random.fold_in(key, i)` for `key + i`."""
    data = context.finding.data
    for sum_ in context.find(ast.BinOp):
        if isinstance(data, FoldedKey):
            edit = context.replace(sum_, context.spelled(data.text))
            yield Candidate("Derive a key with `fold_in`", (edit,), same=False)
        return


REMEDY = Remedy("`fold_in` for a key with an integer added to it (unsafe)", candidates)
