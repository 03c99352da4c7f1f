"""JX101 and JX104: a captured array, made where it is used, or given as an argument."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, FunctionNode
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit, Position, Range

_MADE = re.compile(r"`(?P<source>jnp\.[^`]*)` would make")
_TYPE = re.compile(r"\((?P<type>\w+\[[\d,]*\])\)")
_NUMPY = re.compile(
    r"numpy\.(arange|zeros|ones|full|linspace|logspace|geomspace|eye|identity|tri|tril|triu|meshgrid|indices|zeros_like|ones_like|full_like|"
    r"sin|cos|tan|exp|log|sqrt|abs|tanh|square|power|where|outer|repeat|tile|stack|concatenate|hstack|vstack|reshape|broadcast_to|"
    r"float32|float16|int32|int16|int8|uint32|uint8|pi|newaxis|hanning|hamming|blackman|diag|roll|flip|array|asarray|fft\.fftfreq|fft\.rfftfreq)"
)
"""What `jax.numpy` has under the same name with the same meaning."""


def candidates(asked: Asked) -> Iterator[Candidate]:
    """`jnp` in place of `np`, then what would make the array, then an argument."""
    yield from by_jnp(asked)
    yield from _made(asked)
    yield from to_argument(asked)


def by_jnp(asked: Asked) -> Iterator[Candidate]:
    """NumPy's functions as those of `jax.numpy`, in the expression and in what its local names are assigned."""
    if not asked.jnp:
        return
    edits: dict[Range, Edit] = {}
    for node in _with_assignments(asked):
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and _NUMPY.fullmatch(asked.called(each)):
                root: ast.expr = each
                while isinstance(root, ast.Attribute):
                    root = root.value
                edits[asked.range(root)] = asked.replace(root, asked.jnp)
    if edits:
        title = f"Compute it by `{asked.jnp}` in place of `{asked.np}`"
        yield Candidate(title, tuple(edits.values()))


def _with_assignments(asked: Asked) -> list[ast.AST]:
    """The largest node in the range, and the statements of its function that assign the names in it, as far back as they lead."""
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


def _made(asked: Asked) -> Iterator[Candidate]:
    """The array's name as the expression that would make it."""
    said = _MADE.search(asked.finding.message)
    if said is None or not asked.jnp:
        return
    source = re.sub(r"\bjnp\.", f"{asked.jnp}.", said["source"])
    for name in globals_in(asked):
        yield Candidate(
            f"Make `{name.id}` by `{source}`", (asked.replace(name, asked.bracketed(name, source)),)
        )


def globals_in(asked: Asked) -> list[ast.Name]:
    """Names in the finding's range that the module binds by an assignment."""
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


def to_argument(asked: Asked) -> Iterator[Candidate]:
    """A captured array as an argument, with an example of its type."""
    kind = _TYPE.search(asked.finding.message)
    function = asked.subject
    if kind is None or function is None or function.args.defaults or function.args.vararg:
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
        text = kind["type"].replace(",", ", ")
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
    "`jnp` in place of `np`; what would make the array, `jnp.arange(…)`; an argument (unsafe)",
    candidates,
    timed=True,
)
