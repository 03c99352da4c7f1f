"""The groups of a function's kernels: halves of a derivative, and the calls that created them.

A kernel belongs to the group of the expression at its fusion boundary; fusions may compute
expressions of other groups too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jaxsight.features.model import Group
from jaxsight.features.panel.call_chains import Chains, chains
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.source.text import Range
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.messages.replies import BACKWARD, Call

_Key = tuple[str, object]
"""What kind of group it is (`phase`, `call`), and which one."""
_LONGEST = 60


@dataclass(slots=True)
class _Node:
    """A group while the tree of groups is being built."""

    title: str = ""
    place: Range | None = None
    kernels: list[int] = field(default_factory=list)
    parts: dict[_Key, _Node] = field(default_factory=dict)


def grouped(kernels: Kernels) -> tuple[tuple[Group, ...], tuple[int, ...]]:
    """Return the groups, each after the one around it, and for each kernel its group or -1."""
    lowered = kernels.lowered
    known = chains(lowered.equations, lowered.calls, kernels.view.answer.texts)
    has_backward = any(equation.phase == BACKWARD for equation in lowered.equations)
    root = _Node()
    for index, kernel in enumerate(kernels.graph.kernels):
        node = root
        for key, title, place in _steps(kernels, known, kernel, has_phases=has_backward):
            node = node.parts.setdefault(key, _Node(title, place))
        node.kernels.append(index)
    groups: list[Group] = []
    of = [-1] * len(kernels.graph.kernels)
    for node in root.parts.values():
        _flatten(node, -1, groups, of)
    return tuple(groups), tuple(of)


def _flatten(node: _Node, parent: int, groups: list[Group], of: list[int]) -> None:
    """Append a group and those in it; a group with nothing but another one is joined with it."""
    titles = [node.title]
    while not node.kernels and len(node.parts) == 1:
        (node,) = node.parts.values()
        titles.append(node.title)
    number = len(groups)
    groups.append(Group(" › ".join(titles), parent, node.place))
    for kernel in node.kernels:
        of[kernel] = number
    for part in node.parts.values():
        _flatten(part, number, groups, of)


def _steps(
    kernels: Kernels, known: Chains, kernel: Kernel, *, has_phases: bool
) -> Iterator[tuple[_Key, str, Range | None]]:
    """Yield the groups around a kernel, outermost first."""
    path = _main(known, kernel)
    equation = kernels.equations.get(path)
    if equation is None:
        return
    if has_phases and equation.phase:
        yield ("phase", equation.phase), f"{equation.phase} pass", None
    calls = kernels.lowered.calls
    chain = known.of.get(path, ())
    for at, (index, number) in enumerate(chain):
        call = calls[index]
        place = kernels.view.range_of(call.span) if call.span is not None else None
        times = known.times.get((chain[:at], index), 1)
        which = f" {number}/{times}" if number and times > 1 else ""
        yield ("call", (index, number)), f"{_name(kernels, call, place)}{which}", place


def _main(known: Chains, kernel: Kernel) -> str:
    """Return the equation that a kernel is grouped by; empty if it has none."""
    if kernel.ends_at in kernel.equations:
        return kernel.ends_at
    paths: Sequence[str] = kernel.equations or kernel.feeds
    if not paths:
        return ""
    counts = Counter(known.of.get(path, ()) for path in paths)
    return max(paths, key=lambda path: counts[known.of.get(path, ())])


def _name(kernels: Kernels, call: Call, place: Range | None) -> str:
    """Return `Block.attend` for a call of the user's function, else what is called there."""
    if call.name:
        name = call.name.rpartition("<locals>.")[2]
        return name.removesuffix(".__call__") or name
    text = kernels.view.module.slice_text(place) if place is not None else ""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "library"
    name = " ".join(ast.unparse(tree.func if isinstance(tree, ast.Call) else tree).split())
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
