"""The groups of a function's kernels: halves of a derivative, calls, modules and named scopes.

A kernel belongs to the group of the expression at its fusion boundary; fusions may compute
expressions of other groups too.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic

from jaxsight.figures.figures import At, Figures
from jaxsight.text.layout import cut
from jaxsight.text.parsing import FUNCTIONS, enclosing_nodes, expression_in
from jaxsight.wire.chunks import Span, equation_order
from jaxsight.wire.messages.replies import Call, LoweredEquation

# Which calls an equation was created in, and in which iteration of a loop around each.
#
# JAX keeps the place of a call but not the iteration: the layers of a model that are called in a
# loop have equal tracebacks. In a function without loops, evaluation never goes back, so an
# equation whose place is before that of the previous one belongs to the next call. The equations
# of a backward pass are in the opposite order; its calls are numbered only where they are as many
# as in the forward pass. No call is numbered unless all of them compute much the same.

Trees = Callable[[str], ast.AST | None]
"""Returns the syntax tree of a chunk, in which lines count from 1; `None` if it is not known."""
Countable = Callable[[Span | None, Span | None], bool]
Step = tuple[int, int]
"""An index of a call, and which one of its loop it is: from 1; 0 without a loop or if unknown."""
Chain = tuple[Step, ...]
"""The calls around an equation, outermost first."""
_Order = tuple[int, int, int, int]

_LOOPS = (
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


@dataclass(slots=True)
class _Calls:
    """The calls from one place in a loop: what each computes, and how far the last has come."""

    reached: _Order
    places: list[set[_Order]]

    def add(self, here: _Order, *, is_backward: bool) -> int:
        """Take the next equation's place, and return the number of its call."""
        if (here > self.reached) if is_backward else (here < self.reached):
            self.places.append(set())
        self.reached = here
        self.places[-1].add(here)
        return len(self.places)

    @property
    def count(self) -> int:
        """The number of calls; 0 if it is not certain."""
        common, all_places = set.intersection(*self.places), set.union(*self.places)
        return len(self.places) if 2 * len(common) >= len(all_places) else 0


@dataclass(slots=True)
class Chains:
    """The chains of a program's equations, by path."""

    of: dict[str, Chain] = field(default_factory=dict)
    times: dict[tuple[Chain, int], int] = field(default_factory=dict)
    """How many calls there are from a place in a loop, by the chain of calls around it."""


def chains(equations: Sequence[LoweredEquation], calls: Sequence[Call], trees: Trees) -> Chains:
    """Return the chains of all equations.

    Args:
        equations: of the program.
        calls: that created them.
        trees: returns the syntax trees of what was traced.
    """
    around = [_around(calls, index) for index in range(len(calls))]
    ordered = sorted(equations, key=lambda equation: equation_order(equation.path))
    are_countable = _countable(trees)
    forward = [each for each in ordered if not each.backward]
    counted, times = _counted(forward, calls, around, are_countable, is_backward=False)
    known = Chains(times=times)
    for path, chain in counted.items():  # without the numbers that are not certain
        known.of[path] = tuple(
            (index, number if times.get((chain[:at], index)) else 0)
            for at, (index, number) in enumerate(chain)
        )
    backward = [each for each in ordered if each.backward]
    counted, times = _counted(backward, calls, around, are_countable, is_backward=True)
    for path, chain in counted.items():  # with the numbers of the forward pass, where known
        turned: Chain = ()
        for at, (index, number) in enumerate(chain):
            there = times.get((chain[:at], index), 0)
            is_known = there > 0 and number > 0 and known.times.get((turned, index)) == there
            turned = (*turned, (index, there + 1 - number if is_known else 0))
        known.of[path] = turned
    return known


def _around(calls: Sequence[Call], index: int) -> tuple[int, ...]:
    """Return a call and all around it, outermost first."""
    chain = []
    while index >= 0:
        chain.append(index)
        index = calls[index].parent
    return tuple(reversed(chain))


def _counted(
    equations: Sequence[LoweredEquation],
    calls: Sequence[Call],
    around: Sequence[tuple[int, ...]],
    are_countable: Countable,
    *,
    is_backward: bool,
) -> tuple[dict[str, Chain], dict[tuple[Chain, int], int]]:
    """Return the chains of equations in program order, with calls numbered in that order."""
    counts: dict[tuple[Chain, int], _Calls] = {}
    chains_of: dict[str, Chain] = {}
    for equation in equations:
        indexes = around[equation.call] if equation.call >= 0 else ()
        outer = equation.path.rpartition("/")[0].rpartition("/")[0]
        # The beginning of the chain is that of the equation around.
        chain = chains_of.get(outer, ())
        if tuple(index for index, _ in chain) != indexes[: len(chain)]:
            chain = ()
        for at in range(len(chain), len(indexes)):
            index = indexes[at]
            inside = calls[indexes[at + 1]].span if at + 1 < len(indexes) else equation.span
            number = 0
            if are_countable(calls[index].span, inside) and inside is not None:
                # Expressions sort as they are evaluated: operands before what uses them.
                here = (inside.end_line, inside.end_column, -inside.line, -inside.column)
                count = counts.setdefault((chain, index), _Calls(here, [set()]))
                number = count.add(here, is_backward=is_backward)
            chain = (*chain, (index, number))
        chains_of[equation.path] = chain
    return chains_of, {key: count.count for key, count in counts.items()}


def _countable(trees: Trees) -> Countable:
    """Return whether a call is in a loop, and a place inside its function is in none.

    False if one of them is not known.
    """

    @functools.cache
    def are_countable(call: Span | None, inside: Span | None) -> bool:
        if call is None or inside is None or not any(map(_is_loop, _around_span(trees, call))):
            return False
        function = _around_span(trees, inside)[:1]
        return bool(function) and not any(map(_is_loop, _body(function[0])))

    return are_countable


def _around_span(trees: Trees, span: Span) -> list[ast.AST]:
    """Return the innermost function around a place and the nodes in it around the place.

    Empty outside of functions. Lines count from the start of the chunk.
    """
    if (tree := trees(span.chunk)) is None:
        return []
    around = enclosing_nodes(tree, (span.line, span.column))
    return around if isinstance(next(iter(around), None), FUNCTIONS) else []


def _is_loop(node: ast.AST) -> bool:
    return isinstance(node, _LOOPS)


def _body(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions inside it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, FUNCTIONS):
            yield node
            yield from _body(node)


_LONGEST = 60  # characters of a name in the panel, which a narrow sidebar cuts anyway
FORWARD, BACKWARD = "forward pass", "backward pass"


@dataclass(frozen=True, slots=True)
class PanelGroup(Generic[At]):
    """A group of kernels: `backward`, or the calls of `block`; `parent` is the index of another.

    `place` is the call in the source.
    """

    title: str
    parent: int = -1
    place: At | None = None


@dataclass(slots=True)
class _Node(Generic[At]):
    """A group while the tree of groups is being built."""

    title: str = ""
    place: At | None = None
    kernels: list[int] = field(default_factory=list)
    parts: dict[str, _Node[At]] = field(default_factory=dict)


def grouped(figures: Figures[At]) -> tuple[list[PanelGroup[At]], list[int]]:
    """Return the groups, each after the one around it, and for each kernel its group or -1."""
    equations, kernels = figures.lowered.equations, figures.graph.kernels
    known = chains(equations, figures.lowered.calls, functools.cache(figures.places.tree))
    differentiated = {each.scope[:1] for each in equations if each.backward}
    root: _Node[At] = _Node()
    for index, kernel in enumerate(kernels):
        node = root
        if kernel.ends_at in kernel.equations:
            main = kernel.ends_at
        else:  # an equation of the calls that most of its equations are from
            paths: Sequence[str] = kernel.equations or kernel.feeds
            counts = Counter(known.of.get(path, ()) for path in paths)
            main = max(paths, key=lambda path: counts[known.of.get(path, ())], default="")
        if (equation := figures.equations.get(main)) is not None:
            for title, place in _steps(figures, known, equation, differentiated):
                node = node.parts.setdefault(title, _Node(title, place))
        node.kernels.append(index)
    groups: list[PanelGroup[At]] = []
    of = [-1] * len(kernels)
    for node in root.parts.values():
        _flatten(node, -1, groups, of)
    return groups, of


def _flatten(node: _Node[At], parent: int, groups: list[PanelGroup[At]], of: list[int]) -> None:
    """Append a group and those in it; a group with nothing but another one is joined with it."""
    titles = [node.title]
    while not node.kernels and len(node.parts) == 1:
        (node,) = node.parts.values()
        titles.append(node.title)
    number = len(groups)
    groups.append(PanelGroup(" › ".join(titles), parent, node.place))
    for kernel in node.kernels:
        of[kernel] = number
    for part in node.parts.values():
        _flatten(part, number, groups, of)


def _steps(
    figures: Figures[At],
    known: Chains,
    equation: LoweredEquation,
    differentiated: Collection[tuple[str, ...]],
) -> Iterator[tuple[str, At | None]]:
    """Yield the titles of the groups around an equation, outermost first, and their places.

    Args:
        differentiated: the outermost functions that have a backward pass.
    """
    if equation.backward:
        yield BACKWARD, None
    elif equation.scope and equation.scope[:1] in differentiated:
        yield FORWARD, None
    calls = [*_calls(figures, known, equation)]
    is_library = equation.call >= 0 and not figures.lowered.calls[equation.call].name
    if is_library or set(equation.scope) <= {name for name, _, _ in calls}:
        for name, which, place in calls:
            yield f"{name}{which}", place
        return
    # Modules and named scopes have names that calls do not have.
    for label in equation.scope:
        at = next((at for at, (name, _, _) in enumerate(calls) if name == label), -1)
        _, which, place = calls[at] if at >= 0 else ("", "", None)
        yield f"{label}{which}", place
        calls = calls[at + 1 :]


def _calls(
    figures: Figures[At], known: Chains, equation: LoweredEquation
) -> Iterator[tuple[str, str, At | None]]:
    """Yield the name, the number in a loop (` 2/6`) and the place of each call, outermost first."""
    chain = known.of.get(equation.path, ())
    for at, (index, number) in enumerate(chain):
        call = figures.lowered.calls[index]
        if call.name.endswith(">"):
            continue  # `<lambda>`, `<listcomp>`: part of the function around it
        place = figures.places.at(call.span) if call.span is not None else None
        times = known.times.get((chain[:at], index), 1)
        which = f" {number}/{times}" if number and times > 1 else ""
        yield _name(figures, call, place), which, place


def _name(figures: Figures[At], call: Call, place: At | None) -> str:
    """Return `Block.attend` for a call of the user's function, else what is called there."""
    if call.name:
        name = call.name.rpartition("<locals>.")[2]
        return name.removesuffix(".__call__") or name
    text = figures.places.written(place) if place is not None else ""
    if (tree := expression_in(text)) is None:
        return "library"
    name = " ".join(ast.unparse(tree.func if isinstance(tree, ast.Call) else tree).split())
    return cut(name, _LONGEST)
