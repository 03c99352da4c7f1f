"""The local names of a function: its parameters, and the names that its body binds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxsight.source.analysis.syntax_trees import dotted_name, first_name, statements_in
from jaxsight.text.names import bound_in_scope, name_set, parameters_of

# Methods and attributes of arrays, strings and containers, by what calling them can change.

VALUE_METHODS = name_set(
    """
    all any argmax argmin argsort astype block_until_ready clip conj conjugate copy cumprod
    cumsum diagonal dot flatten imag item max mean min nonzero prod ravel real repeat reshape
    round searchsorted squeeze std sum swapaxes take tolist trace transpose var view count
    encode endswith format index isdigit join lower lstrip removeprefix removesuffix replace
    rstrip split splitlines startswith strip title upper items keys values
    """
)
"""Methods of arrays, strings and dictionaries without side effects.

None of them returns a one-pass iterator.
"""

VALUE_ATTRIBUTES = frozenset(
    {"T", "at", "dtype", "imag", "itemsize", "nbytes", "ndim", "real", "shape", "size"}
)
"""Attributes of arrays."""

ARRAY_UPDATES = frozenset(
    {"add", "apply", "divide", "get", "max", "min", "mul", "multiply", "power", "set", "subtract"}
)
"""Methods such as `x.at[i].set(y)`, which return a new array."""

CONTAINER_METHODS = name_set(
    """
    add append appendleft clear difference_update discard extend get insert pop popitem popleft
    remove reverse setdefault sort update
    """
)
"""Methods that a function may call on a container that it created itself."""

CONTAINERS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"})
"""Functions that return a new container."""


RESULT = "()"
"""What follows a function's name in that of its result: `plt.subplots().plot`."""

FunctionLike = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(slots=True)
class LocalNames:
    """The local names of a function, or of a comprehension."""

    all: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    containers: set[str] = field(default_factory=set)
    """Names that are only bound to new containers, which no other code can hold."""
    functions: set[str] = field(default_factory=set)
    """Names that are only bound to one inner function."""
    makers: dict[str, str] = field(default_factory=dict)
    """The functions of which names are only bound to results, or parts of them: `plt.subplots`."""

    def result(self, name: str) -> str:
        """Return the name of a local name's attribute by what made the local name.

        It is `plt.subplots().plot` for `ax.plot` after `fig, ax = plt.subplots()`; empty if
        something else may have made it. Other names are returned as they are.
        """
        resolved: set[str] = set()
        while (root := first_name(name)) in self.all:
            maker = self.makers.get(root, "")
            if not maker or root in resolved:
                return ""
            resolved.add(root)
            name = f"{maker}{RESULT}{name.removeprefix(root)}"
        return name


def local_names_of(function: FunctionLike) -> LocalNames:
    """Return the local names of a function, without those of the functions around it."""
    names = set(parameters_of(function.args))
    if isinstance(function, ast.Lambda):
        return LocalNames(all=set(names), parameters=names)
    outer: set[str] = set()
    functions: set[str] = set()
    values: dict[str, list[ast.expr | None]] = {}
    makers: dict[str, set[str]] = {}
    for statement in statements_in(function.body):
        match statement:
            case ast.Global(names=declared) | ast.Nonlocal(names=declared):
                outer.update(declared)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                functions.add(name)
        for name, value in _bindings(statement):
            values.setdefault(name, []).append(value)
            makers.setdefault(name, set()).add(_maker(statement))
    return LocalNames(
        # A name is local to the whole function as soon as one statement in it binds it.
        all=names | (values.keys() - outer),
        parameters=names,
        containers={
            name
            for name, bound in values.items()
            if name not in names and all(map(_is_new_container, bound))
        },
        functions={name for name in functions if len(values[name]) == 1},
        makers={
            name: maker
            for name, (maker, *more) in makers.items()
            if maker and not more and name not in names and name not in outer
        },
    )


def _maker(statement: ast.stmt) -> str:
    """Return the name of the function whose result a statement binds; empty if there is none."""
    match statement:
        case ast.Assign(value=ast.Call(func=function)):
            return dotted_name(function)
        case ast.With(items=[ast.withitem(context_expr=ast.Call(func=function))]):
            return dotted_name(function)
    return ""


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that a statement binds, without its blocks, and each value if it is known."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
            | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            yield name, value
            others = bound_in_scope(value) if value is not None else ()
        case _:
            others = bound_in_scope(statement, blocks=False)
    for other in others:
        yield other, None


def _is_new_container(value: ast.expr | None) -> bool:
    match value:
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            return True
        case ast.Call(func=function):
            return dotted_name(function).rpartition(".")[2] in CONTAINERS
    return False
