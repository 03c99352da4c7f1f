"""JX445: a mapped function names an axis that its `vmap` or `pmap` does not.

A function that names an axis is traced alone with one device (`tracer/calls/stateful_traces.py`):
so the text is looked at, what is mapped here, and whether the file names the axis anywhere else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from jaxsight.rules.failure_text import is_a, jax_page
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import FunctionNode, dotted, keyword
from jaxsight.rules.text.statements import Statement, full_name, imports_of
from jaxsight.rules.violation import ModuleViolation, NodeViolation, Violation
from jaxsight.rules.wording import quoted
from jaxsight.wire.observations import Failure

RULE = Rule(
    "JX445",
    "unbound-axis-name",
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
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Recognize JAX's `NameError`."""
    unbound = _UNBOUND.match(failure.message)
    if unbound is None or not is_a(failure, "NameError"):
        return None
    name = unbound["name"]
    return Violation(
        f"{quoted(expression, 'this function')} names the axis {quoted(name, most=20)}, which "
        "nothing binds",
        help=_help(name),
        url=jax_page(failure),
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
        violation = _violation(call, used, elsewhere, dict(imports))
        if violation is not None:
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
    inside = {id(axis) for node in ast.walk(tree) for axis in _axis_nodes(node, names)}
    strings = frozenset(
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
    )
    calls = tuple(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and full_name(dotted(node.func), names) in _MAPS
    )
    return functions, strings, calls


def _axis_nodes(node: ast.AST, imports: Mapping[str, str]) -> list[ast.Constant]:
    """Return the literal name of the axis of a collective."""
    if not isinstance(node, ast.Call):
        return []
    at = _AXIS_AT.get(full_name(dotted(node.func), imports))
    if at is None:
        return []
    axis = keyword(node, "axis_name") or (node.args[at] if at < len(node.args) else None)
    is_name = isinstance(axis, ast.Constant) and isinstance(axis.value, str)
    return [axis] if is_name and isinstance(axis, ast.Constant) else []


def _axes(tree: ast.AST, imports: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        for axis in _axis_nodes(node, imports):
            yield str(axis.value)


def _violation(
    call: ast.Call,
    used: Mapping[str, frozenset[str]],
    elsewhere: set[str],
    imports: Mapping[str, str],
) -> NodeViolation | None:
    """Return the finding of a map whose function names an axis that the file names nowhere else."""
    named = keyword(call, "axis_name")
    if not call.args or any(word.arg is None for word in call.keywords):
        return None
    if named is not None and not isinstance(named, ast.Constant):
        return None
    match call.args[0]:
        case ast.Name(id=name):
            axes, function = used.get(name, frozenset()), name
        case ast.Lambda() as body:
            axes, function = frozenset(_axes(body, imports)), "lambda"
        case _:
            return None
    missing = sorted(axes - elsewhere)
    if not missing:
        return None
    api, axis = dotted(call.func), missing[0]
    subject = "its function" if function == "lambda" else quoted(function, most=20)
    return NodeViolation(
        call.func,
        f"`{api}` does not bind the axis {quoted(axis, most=20)}, which {subject} names",
        help=_help(axis, "f" if function == "lambda" else function, api),
        notes=("nothing else in this file names the axis",),
        severity="warning",
    )


# The fix: name the axis where it is mapped.

_AXIS = re.compile(r'axis_name="(\w+)"')


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the map with `axis_name=`."""
    axis = _AXIS.search(context.finding.help)
    function = context.node
    call = context.parents.get(function) if function is not None else None
    if axis is None or not isinstance(call, ast.Call) or call.func is not function:
        return
    named = keyword(call, "axis_name")
    edit = (
        context.replace(named, f'"{axis[1]}"')
        if named is not None
        else context.replace(call, f"{context.text(call)[:-1]}, {axis[0]})")
    )
    yield Candidate(f"Name the axis `{axis[1]}`", (edit,), same=False)


REMEDY = Remedy("the name of the axis where it is mapped (unsafe)", candidates)
