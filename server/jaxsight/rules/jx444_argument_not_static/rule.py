"""JX444: a jitted function gets or returns a value that is not an array, as `self` or a string.

Methods under `@jax.jit` are found in the text, too, where their class is no pytree.
"""

# Longer than most rules: errors and plain text show it, and the fix changes the decorator of
# another chunk.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.failure_text import FUNCTIONS, described_type
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.rule import ModuleViolation, NodeViolation, Rule, Violation
from jaxsight.rules.text.expressions import FunctionNode, call_operands, dotted
from jaxsight.rules.text.jitted import positional
from jaxsight.rules.text.statements import Imports, Statement, full_name, imports_of
from jaxsight.rules.text.transformations import of_decorator
from jaxsight.rules.wording import quoted

RULE = Rule(
    __name__,
    "Jitted function gets or returns a value that is not an array.",
    word="jit",
    without_inputs=True,
)

_NAME = re.compile(r"<(?:bound )?(?:function|method) (?P<name>(?:[^\s<>]|<\w+>)+)")
_FOR_JAX = frozenset({"tree_flatten", "flatten", "__jax_array__", "__array__", "dtype"})
"""Methods of classes that JAX may take: registered by a decorator's function, or as an array."""
_OF_METHOD = (
    "decorate with `@partial(jax.jit, static_argnums={})`, or make the class a pytree: "
    "`jax.tree_util.register_dataclass`, `eqx.Module` with `@eqx.filter_jit`, `nnx.Module` with "
    "`@nnx.jit`"
)
_TRAP = (
    "with `static_argnums=0` a method sees the attributes as they were when it was traced, and the "
    "object must be hashable"
)
_AGAIN = "the function is traced again for each value of a static argument, which must be hashable"
_NEW = "a new `lambda` or `partial` in each call is a new value: define it once"


ERRORS = ErrorTable(RULE, "TypeError", "ValueError")


@ERRORS.explains(
    r"Error interpreting argument to (?P<function>[^\n]*?) as an abstract array\. The "
    r"problematic value is of type <class '(?P<type>[^']+)'> and was passed to the function at "
    r"path (?P<path>[^\n]*?)\.(?:\n|$)"
)
def of_argument(error: Matched) -> Violation:
    name = _NAME.match(error["function"])
    function = name["name"].rpartition("<locals>.")[2] if name is not None else ""
    path, type = error["path"], error["type"]
    parameter = re.split(r"[.\[]", path)[0]
    data = function, parameter
    if parameter == "self" and "." in function:
        help = _OF_METHOD.format("0")
        return Violation(_self(function), help=help, notes=(_TRAP,), data=data)
    what = f"argument {quoted(path, most=20)} of jitted {quoted(function, 'function', most=20)}"
    if type == "numpy.ndarray":
        return Violation(
            f"{what} is an array without numbers",
            help="encode strings and objects as integers before the call",
        )
    help = "make it static with `static_argnums`, or bind it with `functools.partial`"
    notes = (_AGAIN, _NEW) if type.rpartition(".")[2] in FUNCTIONS else (_AGAIN,)
    is_part = parameter != path and parameter not in ("args", "kwargs")
    is_attribute = is_part and path[len(parameter)] == "."
    if is_part:
        notes = ("a static argument must be hashable: a tuple is, a list or `dict` is not",)
        help = f"take it out of {quoted(parameter, most=20)}: pass it as another, static argument"
    if is_attribute:
        help = (
            f'make it static if it holds no arrays (`static_argnames="{parameter}"`); a module is '
            "for `eqx.filter_jit`, where all that are not arrays are static"
        )
    elif not is_part and parameter.isidentifier() and parameter not in ("args", "kwargs"):
        help = f'make it static: `@partial(jax.jit, static_argnames="{parameter}")`'
    return Violation(
        f"{what} is {described_type(type)}, not an array",
        help=help,
        notes=notes,
        data=data if is_attribute or not is_part else None,
    )


def _self(method: str) -> str:
    return f"`self` of the jitted method {quoted(method)} is not a valid JAX type"


@ERRORS.explains(
    r"function (?P<function>\S+) at \S+ traced for (?P<api>\w+) returned a value of type "
    r"<class '(?P<type>[^']+)'>(?: at output component (?P<path>\S+))?, which is not a valid"
)
def of_result(error: Matched) -> Violation:
    function, path = error["function"], error["path"]
    where = f" at {quoted(path, most=20)}" if path not in ("", function) else ""
    value = f"{described_type(error['type'])}{where}"
    return Violation(
        f"{quoted(function, most=24)} returns {value}, which `{error['api']}` cannot return",
        help="return arrays alone, and return the rest from a function that is not transformed",
    )


ERRORS.table(r"""
Output from batched function [^\n]*? with type <class '(?P<type>[^']+)'> is not a valid JAX
    function under `vmap` returns a {type:q}, not an array
    help: return arrays alone, and return the rest from a function that is not transformed
[Jj]itted function has (?:invalid argnames|argnames) \{'(?P<names>[^}]*)'\} in
        (?P<which>static_argnames|donate_argnames)
    `{which}` has {names:q}, which is not a parameter of the function
    help: use the names of the function's own parameters
[Jj]itted function has (?:invalid )?(?P<which>static_argnums|donate_argnums)=(?P<numbers>.+?), but
        only accepts (?P<count>\d+) positional arguments
    `{which}={numbers}` exceeds the {count} parameters
    help: count positional parameters from 0, `self` included
""")


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield the decorator of each jitted method whose class cannot be a pytree.

    A class with bases, decorators or methods for JAX may be one, and so may a class that the file
    hands to any function: one that registers it.
    """
    imports = imports_of(statements)
    methods = [
        (number, *method)
        for number, statement in enumerate(statements)
        for method in statement.read(_jitted_methods, imports)
    ]
    handed = {name for statement in statements for name in statement.read(_handed)}
    for number, owner, method in methods:
        if owner not in handed:
            name = f"{owner}.{method.name}"
            static, counted = _static(method, dict(imports))
            notes = (f"positions count `self`: {counted}",) * bool(counted)
            yield ModuleViolation(
                number,
                NodeViolation(
                    method.decorator_list[0],
                    _self(name),
                    _OF_METHOD.format(static),
                    (*notes, _TRAP),
                    (name, "self"),
                ),
            )


def _static(method: FunctionNode, imports: dict[str, str]) -> tuple[str, str]:
    """Return the `static_argnums` with `self`, and how parameters count if it has others."""
    how = of_decorator(method.decorator_list[0], imports)
    names = positional(method)
    others = [at for at in how.static if 0 < at < len(names)] if how is not None else []
    counted = ", ".join(f"{at} is `{name}`" for at, name in enumerate(names[:5])) if others else ""
    by_name = [at for at, name in enumerate(names) if how is not None and name in how.static_names]
    static = ", ".join(map(str, sorted({0, *others, *by_name})))
    return (f"({static})" if "," in static else static), counted


def _jitted_methods(tree: ast.Module, imports: Imports) -> tuple[tuple[str, FunctionNode], ...]:
    """Return the methods of plain classes that trace `self`, with their classes."""
    return tuple(
        (node.name, method)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and not (node.bases or node.keywords or node.decorator_list)
        and not _FOR_JAX & {each.name for each in node.body if isinstance(each, FunctionNode)}
        for method in node.body
        if isinstance(method, FunctionNode) and _traces_self(method, dict(imports))
    )


def _traces_self(method: FunctionNode, imports: dict[str, str]) -> bool:
    names = positional(method)
    if len(method.decorator_list) != 1 or names[:1] != ("self",):
        return False
    how = of_decorator(method.decorator_list[0], imports)
    is_jit = how is not None and full_name(how.by, imports) == "jax.jit"
    return is_jit and how is not None and "self" in how.traces(names)


def _handed(tree: ast.Module) -> frozenset[str]:
    """Return the names that are arguments of calls."""
    return frozenset(
        argument.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for argument in call_operands(node)
        if isinstance(argument, ast.Name)
    )


# The fix: make the argument of a jitted function static.


@RULE.fixes("a static argument (unsafe)")
def candidates(context: FixContext, data: tuple[str, str]) -> Iterator[Candidate]:
    """Yield the definition with a decorator that names the static argument."""
    name, parameter = data[0].rpartition(".")[2], data[1]
    static = "static_argnums=0" if parameter == "self" else f'static_argnames="{parameter}"'
    for chunk in context.elsewhere():
        for node in ast.walk(chunk.tree):
            if isinstance(node, FunctionNode) and node.name == name:
                for decorator in node.decorator_list:
                    if chunk.called(decorator) == "jax.jit" and dotted(decorator):
                        text = f"{chunk.partial}({chunk.text(decorator)}, {static})"
                        yield Candidate(
                            f"Make `{parameter}` static",
                            (*chunk.functools_import(), chunk.replace(decorator, text)),
                            same=False,
                        )
                        return
