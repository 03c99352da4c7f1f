"""JX404: an index out of bounds, with what is meant by it said."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate

CODE = "JX404"
_SAID = re.compile(r"index (?P<index>\d+) .* with size (?P<size>\d+)")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """The last index in place of a number behind it, the nearest element (`mode="clip"`), a fill value."""
    said = _SAID.search(asked.finding.message)
    if said is not None and int(said["size"]) > 0:
        last = str(int(said["size"]) - 1)
        for node in asked.find(ast.Constant):
            assert isinstance(node, ast.Constant)
            if type(node.value) is int and str(node.value) == said["index"]:
                yield Candidate(
                    f"Take the last index, {last}", (asked.replace(node, last),), same=False
                )
    for node in asked.find(ast.Subscript):
        assert isinstance(node, ast.Subscript)
        if not isinstance(node.ctx, ast.Load) or asked.text(node.value).endswith(".at"):
            continue
        value, index = asked.operand(node.value), asked.text(node.slice)
        for mode, words in (("clip", "the nearest element"), ("fill", "NaN")):
            yield Candidate(
                f'Take {words} there (`mode="{mode}"`)',
                (asked.replace(node, f'{value}.at[{index}].get(mode="{mode}")'),),
                same=False,
            )
        return
