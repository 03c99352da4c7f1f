"""Fix JX101 and JX104: generate a captured array where it is used, or pass it as an argument."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, FunctionNode
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit, Position, Range
from jaxsight.rules.jx101_captured_constant.rule import CapturedArray

_TYPE = re.compile(r"\w+\[[\d,]*\]")
"""Types that example inputs can be written with."""
NUMPY = re.compile(
    r"numpy\.(arange|zeros|empty|empty_like|ones|full|linspace|logspace|geomspace|eye|identity|tri|tril|triu|"
    r"meshgrid|indices|zeros_like|ones_like|full_like|sin|cos|tan|exp|log|sqrt|abs|tanh|square|"
    r"power|where|outer|repeat|tile|stack|concatenate|hstack|vstack|reshape|broadcast_to|"
    r"float32|float16|int32|int16|int8|uint32|uint8|pi|newaxis|hanning|hamming|blackman|diag|"
    r"roll|flip|array|asarray|fft\.fftfreq|fft\.rfftfreq)"
)
"""Functions and constants that `jax.numpy` has under the same name, with the same meaning."""
_TITLE = 60
"""Characters of a title."""


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield `jnp` instead of `np`, then an equal expression of `jnp`, then an argument."""
    array = asked.finding.data
    if not isinstance(array, CapturedArray):
        return
    yield from by_jnp(asked)
    yield from _generated(asked, array.equal_to)
    yield from to_argument(asked, array.type)


def by_jnp(asked: Asked) -> Iterator[Candidate]:
    """Replace NumPy's functions by those of `jax.numpy`.

    Both in the expression and in the assignments of the local names that it reads.
    """
    if not asked.jnp:
        return
    edits: dict[Range, Edit] = {}
    for node in _with_assignments(asked):
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and NUMPY.fullmatch(asked.called(each)):
                root: ast.expr = each
                while isinstance(root, ast.Attribute):
                    root = root.value
                edits[asked.range(root)] = asked.replace(root, asked.jnp)
    if edits:
        title = f"Compute it with `{asked.jnp}` instead of `{asked.np}`"
        yield Candidate(title, tuple(edits.values()))


def _with_assignments(asked: Asked) -> list[ast.AST]:
    """Return the largest node in the range, and the assignments that it depends on."""
    found: list[ast.AST] = list(asked.nodes[:1])
    function = asked.function(found[0]) if found else None
    if function is None:
        return found
    assignments = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    for node in found:  # grows
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        for assignment in assignments:
            targets = {
                each.id
                for target in assignment.targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            }
            if targets & names and assignment not in found:
                found.append(assignment)
    return found


def _generated(asked: Asked, equal_to: str) -> Iterator[Candidate]:
    """Replace the array's name by an expression of `jnp` with the same values."""
    if not equal_to.startswith("jnp.") or not asked.jnp:
        return
    source = re.sub(r"\bjnp\.", f"{asked.jnp}.", equal_to)
    for name in globals_in(asked):
        title = f"Generate `{name.id}` with `"
        shown = textwrap.shorten(source, max(_TITLE - len(title) - 1, 20), placeholder="…")
        edit = asked.replace(name, asked.bracketed(name, source))
        yield Candidate(f"{title}{shown}`", (edit,))


def globals_in(asked: Asked) -> list[ast.Name]:
    """Return the names in the finding's range that the module binds by an assignment."""
    found = []
    for name in asked.find(ast.Name):
        assert isinstance(name, ast.Name)
        if isinstance(name.ctx, ast.Load) and not _is_local(asked, name) and _assigned(asked, name):
            found.append(name)
    return found


def _is_local(asked: Asked, name: ast.Name) -> bool:
    for function in asked.around(name):
        if isinstance(function, FunctionNode):
            bound = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
            bound |= {
                node.id
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            if name.id in bound:
                return True
    return False


def _assigned(asked: Asked, name: ast.Name) -> bool:
    return any(
        re.match(rf"{name.id}\s*(:[^=]*)?=[^=]", chunk.text, re.MULTILINE)
        for chunk in asked.module.chunks
    )


def to_argument(asked: Asked, type: str) -> Iterator[Candidate]:
    """Pass a captured array of a type as an argument, with an example input of that type."""
    function = asked.subject
    if function is None or function.args.defaults or function.args.vararg:
        return
    if not _TYPE.fullmatch(type):
        return
    places = [place for _, place in asked.view.answer.question.set.places]
    if asked.view.subject.examples.source != "docstring" or not places:
        return
    last = max(places).shifted(asked.chunk.first_line)
    line = asked.module.line(last.end.line)
    indent = line[: len(line) - len(line.lstrip())]
    taken = [*function.args.posonlyargs, *function.args.args]
    for name in globals_in(asked):
        if asked.function(name) is not function or not taken:
            continue
        argument = name.id.lower() if name.id.lower() not in asked.names else name.id
        uses = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Load)
        ]
        end = asked.range(taken[-1]).end
        below = Position(last.end.line + 1, 0)
        text = type.replace(",", ", ")
        yield Candidate(
            f"Make `{name.id}` an argument",
            (
                Edit(Range(end, end), f", {argument}"),
                Edit(Range(below, below), f"{indent}{argument}: {text}\n"),
                *(asked.replace(use, argument) for use in uses if argument != name.id),
            ),
            safe=False,
        )


REMEDY = Remedy(
    "`jnp` instead of `np`; an equal expression such as `jnp.arange(…)`; an argument (unsafe)",
    candidates,
    timed=True,
)
