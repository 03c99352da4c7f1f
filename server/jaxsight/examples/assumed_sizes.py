"""Names for the numbers of assumed inputs, so that no shape shows a size that nobody chose.

Sizes of arrays, and whole numbers in expressions and literals (`Model(4)`, `n: 3`) get names.
Numbers that are no sizes (`axis: 2`) get one too: the function does not trace with others, which
shows it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from jaxsight.examples.notation.values import (
    Literal,
    NamedSize,
    Node,
    Number,
    Size,
    TreeNode,
    with_sizes,
)
from jaxsight.examples.resizing import SizedInputs
from jaxsight.examples.signature import Signature
from jaxsight.source.definitions import Function
from jaxsight.text.parsing import expression_in
from jaxsight.wire.messages.inputs import Argument, ValueSpec

_LETTERS = "NMKDEFPQRSUV"


def with_assumed_names(
    inputs: SizedInputs, function: Function, *, by_number: bool = False
) -> SizedInputs:
    """Return inputs whose assumed numbers have names; others stay as they are.

    Args:
        inputs: the inputs.
        function: the function that they are of.
        by_number: whether equal numbers are one size.
    """
    assumed = set(inputs.set.assumed)
    names = _Names(inputs, {p.name for p in Signature(function).parameters}, by_number)
    nodes: dict[str, Node] = {}
    sources: dict[str, tuple[str, ...]] = {}
    covered = True
    for argument in inputs.set.arguments:
        node = inputs.nodes.get(argument.name)
        if argument.name.partition("[")[0] not in assumed and argument.name not in assumed:
            continue
        if node is not None and not isinstance(argument.spec, ValueSpec):
            nodes[argument.name] = with_sizes(node, names.named)
            covered &= not _has_literals(node)
        elif isinstance(argument.spec, ValueSpec):
            parts = _parts(argument, names)
            covered &= parts is not None
            if parts is not None and len(parts) > 1:
                sources[argument.name] = parts
    sizes = {**inputs.sizes, **names.new}
    guessed = frozenset(names.new)
    return replace(
        inputs,
        nodes={**inputs.nodes, **nodes},
        sizes=sizes,
        sources=sources,
        guessed=guessed,
        is_covered=covered,
    )


class _Names:
    """Names of numbers: those of sizes that have one already, and new letters."""

    def __init__(self, inputs: SizedInputs, parameters: set[str], by_number: bool) -> None:
        numbers = list(inputs.sizes.values())
        self._known: dict[object, str] = {}
        self._by_number = by_number
        if by_number:
            self._known |= {n: name for name, n in inputs.sizes.items() if numbers.count(n) == 1}
        taken = {*inputs.all_sizes(inputs.sizes), *dict(inputs.set.sizes), *parameters}
        self._letters = _letters(taken)
        self.new: dict[str, int] = {}

    def name(self, number: int, place: object) -> str:
        """Return the name of a number that may be a size; several arguments may share its place."""
        key = number if self._by_number else (number, place)
        if key not in self._known:
            name = next(self._letters)
            self._known[key] = name
            self.new[name] = number
        return self._known[key]

    def named(self, size: Size) -> Size:
        """Return a size with a name in place of its number; 0 and 1 keep theirs."""
        if isinstance(size, Number) and size.value > 1:
            return NamedSize(self.name(size.value, size.range), size.range)
        return size


def _letters(taken: set[str]) -> Iterator[str]:
    for round in count():
        for letter in _LETTERS:
            name = f"{letter}{round or ''}"
            if name not in taken:
                yield name


def _has_literals(node: Node) -> bool:
    """Return whether a tree of arrays has numbers beside them."""
    match node:
        case TreeNode(children=children):
            return any(map(_has_literals, children))
        case Literal(source=source):
            return any(character.isdigit() for character in source)
    return False


def _parts(argument: Argument, names: _Names) -> tuple[str, ...] | None:
    """Return the source of a value: texts and, between them, names in place of numbers.

    Returns `None` if it has numbers and cannot be read.
    """
    assert isinstance(argument.spec, ValueSpec)
    source = argument.spec.source.strip()
    if not any(character.isdigit() for character in source):
        return (source,)
    tree = expression_in(source)
    if tree is None or "\n" in source or not source.isascii():
        return None
    numbers = sorted(
        (node.col_offset, node.end_col_offset or 0, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1
    )
    parts: list[str] = []
    end = 0
    for start, stop, value in numbers:
        parts += [source[end:start], names.name(value, (argument.name, start))]
        end = stop
    return (*parts, source[end:])
