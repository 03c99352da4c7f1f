"""Arrays that a traced function captures: generate them where they are used, or pass them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.text.expressions import FunctionNode, reads_of
from jaxsight.source.text import Edit, Position, Range
from jaxsight.text.names import bound_in, read_in
from jaxsight.text.units import MIB
from jaxsight.wire.program import CONSTANT, ProgramValue, Step

LARGE = MIB
"""Bytes from which a captured array is large, a choice: lower reports each table of constants,
higher misses what every executable then holds."""


@dataclass(frozen=True, slots=True)
class CapturedArray:
    """An array that the traced function captures."""

    type: str
    """As jaxprs print it: `f32[512,512]`."""
    equal_to: str
    """An expression of `jnp` with the same values; empty if none is known."""


def captured(view: ProgramView) -> Iterator[tuple[ProgramValue, Sequence[Step]]]:
    """Yield the large captured arrays that are used, with the equations that read them."""
    flow = view.flow
    for number, value in enumerate(flow.values):
        if value.origin != CONSTANT or value.bytes < LARGE or flow.of(number) != number:
            continue
        if users := flow.used_by(number):
            yield value, users


_TYPE = re.compile(r"\w+\[[\d,]*\]")
"""Types that example inputs can be written with."""
_NUMPY = re.compile(
    r"numpy\.(arange|zeros|empty|empty_like|ones|full|linspace|logspace|geomspace|eye|identity|tri|tril|triu|"
    r"meshgrid|indices|zeros_like|ones_like|full_like|sin|cos|tan|exp|log|sqrt|abs|tanh|square|"
    r"power|where|outer|repeat|tile|stack|concatenate|hstack|vstack|reshape|broadcast_to|"
    r"float32|float16|int32|int16|int8|uint32|uint8|pi|newaxis|hanning|hamming|blackman|diag|"
    r"roll|flip|array|asarray|fft\.fftfreq|fft\.rfftfreq)"
)
"""Functions and constants that `jax.numpy` has under the same name, with the same meaning."""
_TITLE = 60
"""Characters of a title, 20 of them of code: longer ones do not fit into an editor's menu."""


def generated_or_passed(context: FixContext, array: CapturedArray) -> Iterator[Candidate]:
    """Yield `jnp` instead of `np`, then an equal expression of `jnp`, then an argument."""
    yield from by_jnp(context)
    if array.equal_to.startswith("jnp.") and context.jnp:
        source = re.sub(r"\bjnp\.", f"{context.jnp}.", array.equal_to)
        for name in globals_in(context):
            title = f"Generate `{name.id}` with `"
            shown = textwrap.shorten(source, max(_TITLE - len(title) - 1, 20), placeholder="…")
            edit = context.replace(name, context.bracketed(name, source))
            yield Candidate(f"{title}{shown}`", (edit,))
    yield from to_argument(context, array.type)


def by_jnp(context: FixContext) -> Iterator[Candidate]:
    """Replace NumPy's functions by those of `jax.numpy`.

    Both in the expression and in the assignments of the local names that it reads.
    """
    if not context.jnp:
        return
    if edits := jnp_for_numpy(context, _with_assignments(context)):
        yield Candidate(f"Compute it with `{context.jnp}` instead of `{context.np}`", edits)


def jnp_for_numpy(context: FixContext, trees: Iterable[ast.AST]) -> tuple[Edit, ...]:
    """Return what makes the calls of NumPy in some syntax those of `jax.numpy`."""
    edits: dict[Range, Edit] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Attribute) and _NUMPY.fullmatch(context.called(node)):
            root: ast.expr = node
            while isinstance(root, ast.Attribute):
                root = root.value
            edits[context.range(root)] = context.replace(root, context.jnp)
    return tuple(edits.values())


def _with_assignments(context: FixContext) -> list[ast.AST]:
    """Return the largest node in the range, and the assignments that it depends on."""
    nodes: list[ast.AST] = list(context.nodes[:1])
    if (function := context.function(context.node)) is None:
        return nodes
    assignments = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    for node in nodes:  # grows
        names = {*read_in(node), *bound_in(node)}
        nodes += (
            assignment
            for assignment in assignments
            if assignment not in nodes and not names.isdisjoint(bound_in(*assignment.targets))
        )
    return nodes


def globals_in(context: FixContext) -> list[ast.Name]:
    """Return the names in the finding's range that the module binds by an assignment."""
    names = []
    for name in context.find(ast.Name):
        functions = (each for each in context.ancestors(name) if isinstance(each, FunctionNode))
        assigned = re.compile(rf"{name.id}\s*(:[^=]*)?=[^=]", re.MULTILINE)
        is_assigned = any(assigned.match(chunk.text) for chunk in context.module.chunks)
        is_local = name.id in bound_in(*functions)
        if isinstance(name.ctx, ast.Load) and is_assigned and not is_local:
            names.append(name)
    return names


def to_argument(context: FixContext, type: str) -> Iterator[Candidate]:
    """Pass a captured array of a type as an argument, with an example input of that type."""
    function = context.subject
    if function is None or function.args.defaults or function.args.vararg:
        return
    places = [range_ for _, range_ in context.view.example_places]
    if not places or not _TYPE.fullmatch(type):
        return
    last = max(places).shifted(context.chunk.first_line)
    line = context.module.line(last.end.line)
    indent = line[: len(line) - len(line.lstrip())]
    parameters = [*function.args.posonlyargs, *function.args.args]
    for name in globals_in(context):
        if context.function(name) is not function or not parameters:
            continue
        argument = name.id.lower() if name.id.lower() not in context.names else name.id
        uses = reads_of(name.id, function) if argument != name.id else ()
        below = Position(last.end.line + 1, 0)
        example = f"{indent}{argument}: {type.replace(',', ', ')}\n"
        edits = (
            context.appended(parameters[-1], f", {argument}"),
            Edit(Range(below, below), example),
            *(context.replace(use, argument) for use in uses),
        )
        yield Candidate(f"Make `{name.id}` an argument", edits, safe=False)
