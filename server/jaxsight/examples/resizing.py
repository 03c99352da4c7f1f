"""Example inputs with other sizes: those of `where`, of the settings, and named numbers.

A number in an example input has a name if the parameter's annotation or the function's body has
one for its dimension: `x: f32[4, 8]` with `B, D = x.shape`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from jaxsight.examples.annotations import example_of
from jaxsight.examples.binding import Signature
from jaxsight.examples.notation.shapes import Sizes
from jaxsight.examples.notation.values import (
    ArrayNode,
    Key,
    LiteralNode,
    NamedSize,
    Node,
    Number,
    Size,
    TreeNode,
    arrays_of,
    names_in,
    sizes_of,
    to_spec,
    with_sizes,
)
from jaxsight.examples.problems import Malformed
from jaxsight.examples.sets import ExampleSet
from jaxsight.source.analysis.shape_unpacking import NamedDimension
from jaxsight.source.definitions import Function
from jaxsight.source.text import Range
from jaxsight.text.parsing import expression_in
from jaxsight.wire.messages.inputs import Argument, ValueSpec


@dataclass(frozen=True, slots=True)
class SizedInputs:
    """An example set whose sizes have names."""

    set: ExampleSet
    nodes: Mapping[str, Node]
    """The examples that are not expressions, by argument, with names in place of numbers."""
    sizes: Mapping[str, int]
    """The given sizes that may vary, by name."""
    definitions: Mapping[str, Size]
    """Sizes that `where` defines by others."""
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Assumed values by argument: texts and, between them, names in place of numbers."""
    guessed: frozenset[str] = frozenset()
    """Names for numbers of assumed inputs."""
    is_covered: bool = True
    """Whether all numbers of assumed inputs that may be sizes have names."""

    @property
    def is_assumed(self) -> bool:
        """Whether inputs are jaxsight's own guesses."""
        return bool(self.set.assumed)

    def all_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes with those that are defined by them.

        Raises:
            Malformed: a size is negative.
        """
        reading = Sizes(self.definitions, sizes)
        return {**sizes, **{name: reading.value(size) for name, size in self.definitions.items()}}

    def resized(self, sizes: Mapping[str, int]) -> ExampleSet | None:
        """Return the set with other sizes; `None` if one would be negative."""
        reading = Sizes(self.definitions, sizes)
        try:
            numbers = self.all_sizes(sizes)
            arguments = tuple(
                self._resized(argument, reading, numbers) for argument in self.set.arguments
            )
        except Malformed:
            return None
        mine = tuple((name, numbers.get(name, number)) for name, number in self.set.sizes)
        return replace(self.set, arguments=arguments, sizes=mine)

    def _resized(self, argument: Argument, reading: Sizes, numbers: Mapping[str, int]) -> Argument:
        parts = self.sources.get(argument.name)
        if parts is not None and isinstance(argument.spec, ValueSpec):
            texts = (str(numbers[p]) if i % 2 else p for i, p in enumerate(parts))
            return replace(argument, spec=replace(argument.spec, source="".join(texts)))
        node = self.nodes.get(argument.name)
        return argument if node is None else Argument(argument.name, to_spec(node, reading.value))


def sized_inputs(
    example_set: ExampleSet,
    function: Function,
    unpacked: Iterable[NamedDimension],
    *,
    by_number: bool = False,
) -> SizedInputs:
    """Return an example set with the names of its sizes.

    Args:
        example_set: the set.
        function: the function that it is of.
        unpacked: the dimensions that the function's body names.
        by_number: whether equal numbers in different lines are one size.
    """
    definitions = dict(example_set.definitions)
    written = dict(example_set.sizes)
    base = {name: n for name, n in written.items() if not _derived(definitions.get(name))}
    nodes = dict(example_set.nodes)
    derived = {name: size for name, size in definitions.items() if _derived(size)}
    base |= {
        name: size.value
        for name, size in definitions.items()
        if isinstance(size, Number) and name not in base
    }
    named = _named_numbers(nodes, function, unpacked)
    values: dict[str, set[int]] = {}
    for (_, number), name in named.items():
        values.setdefault(name, set()).add(number)
    certain = {
        name
        for name, numbers in values.items()
        if len(numbers) == 1 and name not in derived and base.get(name, *numbers) in numbers
    }
    named = {key: name for key, name in named.items() if name in certain}
    base |= {name: number for (_, number), name in named.items()}
    values_of_sizes = list(base.values())
    numbers = {
        n: name for name, n in base.items() if by_number and n > 1 and values_of_sizes.count(n) == 1
    }

    def name_of(size: Size) -> Size:
        if isinstance(size, Number):
            name = named.get((size.range, size.value)) or numbers.get(size.value)
            return NamedSize(name, size.range) if name else size
        return size

    renamed = {name: with_sizes(node, name_of) for name, node in nodes.items()}
    used = _used_names(example_set, renamed, derived)
    base = {name: size for name, size in base.items() if name in used}
    derived = {name: size for name, size in derived.items() if name in used}
    return SizedInputs(example_set, renamed, base, derived)


_WORD = re.compile(r"[^\W\d]\w*")


def _used_names(
    example_set: ExampleSet, nodes: Mapping[str, Node], derived: Mapping[str, Size]
) -> set[str]:
    """Return the names of sizes that the examples depend on."""
    reading = Sizes(derived, {})
    sizes = [size for node in nodes.values() for size in sizes_of(node)]
    sources = [a.spec.source for a in example_set.arguments if isinstance(a.spec, ValueSpec)]
    words = {word for source in sources for word in _WORD.findall(source)}
    sizes += [NamedSize(name) for name in words]
    return {name for size in sizes for name in reading.used(size)}


def _derived(size: Size | None) -> bool:
    return size is not None and bool(names_in(size))


_Place = tuple[Range, int]
"""A number where it is written; several arguments of one line share it."""


def _named_numbers(
    nodes: Mapping[str, Node], function: Function, unpacked: Iterable[NamedDimension]
) -> dict[_Place, str]:
    """Return the names of numbers in example inputs; those of annotations come first."""
    names: dict[_Place, str] = {}
    refused: set[_Place] = set()
    for parameter in function.parameters:
        node, example = nodes.get(parameter.name), example_of(parameter.annotation)
        if isinstance(node, ArrayNode | Key) and isinstance(example, ArrayNode | Key):
            if len(node.shape) != len(example.shape):
                continue
            for size, described in zip(node.shape, example.shape, strict=True):
                if isinstance(size, Number) and isinstance(described, NamedSize):
                    _add(names, refused, size, described.name)
    annotated = set(names)
    written = {p.name for p in function.parameters if nodes.get(p.name) != example_of(p.annotation)}
    for dimension in unpacked:
        node = nodes.get(dimension.parameter) if dimension.parameter in written else None
        if isinstance(node, ArrayNode | Key) and -len(node.shape) <= dimension.index < len(
            node.shape
        ):
            size = node.shape[dimension.index]
            if isinstance(size, Number) and (size.range, size.value) not in annotated:
                _add(names, refused, size, dimension.name)
    return {place: name for place, name in names.items() if place not in refused}


def _add(names: dict[_Place, str], refused: set[_Place], size: Number, name: str) -> None:
    place = size.range, size.value
    if names.setdefault(place, name) != name:
        refused.add(place)


def has_numbers(inputs: SizedInputs) -> bool:
    """Return whether examples have numbers that might be sizes with names."""
    return any(
        isinstance(size, Number) and size.value in inputs.sizes.values() and size.value > 1
        for node in inputs.nodes.values()
        for array in arrays_of(node)
        for size in array.shape
    )


# Names for the numbers of assumed inputs, so that no shape shows a size that nobody chose.
#
# Sizes of arrays, and whole numbers in expressions and literals (`Model(4)`, `n: 3`) get names.
# Numbers that are no sizes (`axis: 2`) get one too: the function does not trace with others, which
# shows it.

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
        case LiteralNode(source=source):
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
