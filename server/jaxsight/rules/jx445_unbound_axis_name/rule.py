"""JX445: a mapped function names an axis that its `vmap` or `pmap` does not.

A function that names an axis is traced alone with one device (`tracer/calls/stateful_traces.py`):
so the text is looked at, what is mapped here, and whether the file names the axis anywhere else.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import ModuleViolation, NodeViolation, Rule, Violation
from jaxsight.rules.text.expressions import FunctionNode, argument_of, dotted, keyword, strings_in
from jaxsight.rules.text.statements import Statement, full_name, imports_of
from jaxsight.rules.wording import quoted

RULE = Rule(
    __name__,
    "Collective names an axis that nothing around it maps over.",
    word="lax",
    without_inputs=True,
)

_UNBOUND = re.compile(r"(?:Found an )?unbound axis name: (?P<name>\w+)")
_AXIS_AT: Mapping[str, int] = {
    "jax.lax.psum": 1, "jax.lax.pmean": 1, "jax.lax.pmax": 1, "jax.lax.pmin": 1,
    "jax.lax.all_gather": 1, "jax.lax.psum_scatter": 1, "jax.lax.ppermute": 1,
    "jax.lax.pshuffle": 1, "jax.lax.all_to_all": 1, "jax.lax.axis_index": 0,
    "jax.lax.axis_size": 0,
}  # fmt: skip
"""Where collectives have the name of their axis."""
_MAPS = frozenset({"jax.vmap", "jax.pmap"})


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize JAX's `NameError`."""
    unbound = _UNBOUND.match(error.message)
    if unbound is None or not error.is_a("NameError"):
        return None
    name = unbound["name"]
    return Violation(
        f"{error.quoted('this function')} names the axis {quoted(name, most=20)}, which "
        "nothing binds",
        help=_help(name),
    )


def _help(name: str, function: str = "f", api: str = "jax.vmap") -> str:
    return f'name the axis where it is mapped: `{api}({function}, axis_name="{name}")`'


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield each `vmap` and `pmap` of a function of the file that needs another name of an axis.

    An axis that the file names in any other place is not reported: a mesh, or another map, may
    bind it. Nor is one that a variable holds.
    """
    imports = imports_of(statements)
    used: dict[str, frozenset[str]] = {}
    elsewhere: set[str] = set()
    maps: list[tuple[int, ast.Call]] = []
    for number, statement in enumerate(statements):
        functions, strings, calls = statement.read(_facts, imports)
        for name, axes in functions:
            used[name] = used.get(name, axes) & axes  # of functions of one name, what all need
        elsewhere |= strings
        maps += ((number, call) for call in calls)
    for number, call in maps:
        for violation in _violations(call, used, elsewhere, dict(imports)):
            yield ModuleViolation(number, violation)


Facts = tuple[tuple[tuple[str, frozenset[str]], ...], frozenset[str], tuple[ast.Call, ...]]


def _facts(tree: ast.Module, imports: tuple[tuple[str, str], ...]) -> Facts:
    """Return the axes that functions name, all other strings, and the calls of maps."""
    names = dict(imports)
    functions = tuple(
        (node.name, frozenset(_axes(node, names)))
        for node in ast.walk(tree)
        if isinstance(node, FunctionNode)
    )
    others = Counter(strings_in(tree)) - Counter(_axes(tree, names))
    calls = tuple(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and full_name(dotted(node.func), names) in _MAPS
    )
    return functions, frozenset(others), calls


def _axis_nodes(node: ast.AST, imports: Mapping[str, str]) -> list[ast.Constant]:
    """Return the literal name of the axis of a collective."""
    if not isinstance(node, ast.Call):
        return []
    at = _AXIS_AT.get(full_name(dotted(node.func), imports))
    match argument_of(node, at, "axis_name") if at is not None else None:
        case ast.Constant(value=str()) as axis:
            return [axis]
        case _:
            return []


def _axes(tree: ast.AST, imports: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        for axis in _axis_nodes(node, imports):
            yield str(axis.value)


def _violations(
    call: ast.Call,
    used: Mapping[str, frozenset[str]],
    elsewhere: set[str],
    imports: Mapping[str, str],
) -> Iterator[NodeViolation]:
    """Yield the finding of a map whose function names an axis that the file names nowhere else."""
    named = keyword(call, "axis_name") or ast.Constant("")
    if not isinstance(named, ast.Constant) or any(word.arg is None for word in call.keywords):
        return
    axes, function, subject = frozenset[str](), "f", "its function"
    match call.args:
        case [ast.Name(id=function), *_]:
            axes, subject = used.get(function, axes), quoted(function, most=20)
        case [ast.Lambda() as body, *_]:
            axes = frozenset(_axes(body, imports))
    for axis in sorted(axes - elsewhere)[:1]:
        api = dotted(call.func)
        yield NodeViolation(
            call.func,
            f"`{api}` does not bind the axis {quoted(axis, most=20)}, which {subject} names",
            help=_help(axis, function, api),
            notes=("nothing else in this file names the axis",),
            severity="warning",
        )


# The fix: name the axis where it is mapped.

_AXIS = re.compile(r'axis_name="(\w+)"')


@RULE.fixes("the name of the axis where it is mapped (unsafe)")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the map with `axis_name=`."""
    axis = _AXIS.search(context.finding.help)
    call = next(context.ancestors(context.node), None)
    if axis is None or not isinstance(call, ast.Call) or call.func is not context.node:
        return
    edited, text = keyword(call, "axis_name"), f'"{axis[1]}"'
    if edited is None:
        edited, text = call, f"{context.text(call)[:-1]}, {axis[0]})"
    yield context.replaced(edited, text, f"Name the axis `{axis[1]}`", same=False)
