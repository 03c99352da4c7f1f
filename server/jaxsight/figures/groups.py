"""The groups of a function's kernels: halves of a derivative, calls, modules and named scopes.

A kernel belongs to the group of the expression at its fusion boundary; fusions may compute
expressions of other groups too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

from jaxsight.figures.call_chains import Chains, Trees, chains
from jaxsight.figures.drawn import At, PanelGroup
from jaxsight.text.layout import cut
from jaxsight.text.parsing import expression_in
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.messages.replies import Call, Equation
from jaxsight.wire.spans import Span

_LONGEST = 60  # characters of a name in the panel, which a narrow sidebar cuts anyway
FORWARD, BACKWARD = "forward pass", "backward pass"


@dataclass(frozen=True, slots=True)
class GroupedSource(Generic[At]):
    """The equations of a program, and the calls that created them, with their source."""

    equations: Mapping[str, Equation]
    calls: Sequence[Call]
    trees: Trees
    place: Callable[[Span], At | None]
    """Returns where a span is now; `None` if it is gone."""
    text: Callable[[At], str]


@dataclass(slots=True)
class _Node(Generic[At]):
    """A group while the tree of groups is being built."""

    title: str = ""
    place: At | None = None
    kernels: list[int] = field(default_factory=list)
    parts: dict[str, _Node[At]] = field(default_factory=dict)


def grouped(
    kernels: Sequence[Kernel], source: GroupedSource[At]
) -> tuple[tuple[PanelGroup[At], ...], tuple[int, ...]]:
    """Return the groups, each after the one around it, and for each kernel its group or -1."""
    equations = tuple(source.equations.values())
    known = chains(equations, source.calls, source.trees)
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
        equation = source.equations.get(main)
        if equation is not None:
            for title, place in _steps(source, known, equation, differentiated):
                node = node.parts.setdefault(title, _Node(title, place))
        node.kernels.append(index)
    groups: list[PanelGroup[At]] = []
    of = [-1] * len(kernels)
    for node in root.parts.values():
        _flatten(node, -1, groups, of)
    return tuple(groups), tuple(of)


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
    source: GroupedSource[At],
    known: Chains,
    equation: Equation,
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
    calls = [*_calls(source, known, equation)]
    is_library = equation.call >= 0 and not source.calls[equation.call].name
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
    source: GroupedSource[At], known: Chains, equation: Equation
) -> Iterator[tuple[str, str, At | None]]:
    """Yield the name, the number in a loop (` 2/6`) and the place of each call, outermost first."""
    chain = known.of.get(equation.path, ())
    for at, (index, number) in enumerate(chain):
        call = source.calls[index]
        if call.name.endswith(">"):
            continue  # `<lambda>`, `<listcomp>`: part of the function around it
        place = source.place(call.span) if call.span is not None else None
        times = known.times.get((chain[:at], index), 1)
        which = f" {number}/{times}" if number and times > 1 else ""
        yield _name(source, call, place), which, place


def _name(source: GroupedSource[At], call: Call, place: At | None) -> str:
    """Return `Block.attend` for a call of the user's function, else what is called there."""
    if call.name:
        name = call.name.rpartition("<locals>.")[2]
        return name.removesuffix(".__call__") or name
    text = source.text(place) if place is not None else ""
    tree = expression_in(text)
    if tree is None:
        return "library"
    name = " ".join(ast.unparse(tree.func if isinstance(tree, ast.Call) else tree).split())
    return cut(name, _LONGEST)
