"""Where programs begin in a Python file: its statements, `main`, tests, other functions.

Only functions without parameters of their own are among them, besides those that `absl`, `hydra`
and the like call with the command line (`main(argv)`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.source.analysis.syntax_trees import dotted_name, is_main_guard
from jaxsight.source.limits import file_problem, statement_problem
from jaxsight.source.statements import tree_of
from jaxsight.text.names import read_in, with_defaults

_CONFIGURES = ("jax.config", "config", "logging", "warnings", "sys.path", "os.environ")
_OF_JAX = ("jax.", "jnp.", "lax.")
_MAINS = frozenset({"main", "run", "cli", "run_main", "_main"})
_GIVEN = frozenset({"self", "argv", "args", "_", "_argv", "unused_argv", "cfg", "config", "flags"})
"""Parameters of `main` that whoever starts a program passes."""
_MOST_COMPARED = 100
"""Tests from which their order is that of the text, as comparing them takes quadratic time."""
_SETTINGS = re.compile(r"(?:get|make)_(?:\w+_)?(?:config|hyper)\w*")
"""Functions without arguments that call nothing with arrays."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The beginnings of programs in a file, by kind, each kind in the order of the text."""

    acts: bool = False
    """Whether the module's statements do something, or there is nothing else in it."""
    guarded: bool = False
    """Whether some of them are guarded by `__name__`: they call `main`."""
    mains: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    """Those that use other wanted names than the ones before come first.

    Those with parameters of a list come last.
    """
    others: tuple[str, ...] = ()
    """Functions without arguments that use one of the wanted names."""


def entries_in(text: str, wanted: frozenset[str] | None = None) -> Entries:
    """Return where programs begin in a file; nothing if it does not parse, or is too large.

    Args:
        text: the file's text.
        wanted: names that tell that a function reaches what is looked for; by default the names of
            the file's own functions and classes.
    """
    if file_problem(text) or statement_problem(text):
        return Entries()
    try:
        body = tree_of(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Entries()
    own = {s.name for s in body if isinstance(s, ast.FunctionDef | ast.ClassDef)}
    is_own = wanted is None
    wanted = frozenset(own) if wanted is None else wanted
    tests: dict[str, set[str]] = {}
    of_lists: dict[str, set[str]] = {}
    mains: list[str] = []
    others: list[str] = []
    for name, function, cls in _functions(body):
        last = function.name
        inner = (node for statement in function.body for node in ast.walk(statement))
        reaches = not wanted.isdisjoint(set(read_in(function if cls is None else cls)) - {last})
        if last.startswith("test") and (cls is not None or last != "test" or reaches):
            needs = set(_required(function)) - {"self"}
            if not needs:
                tests[name] = _uses(function, wanted)
            elif any(
                "param" in ast.unparse(decorator).lower() for decorator in function.decorator_list
            ):
                of_lists[name] = _uses(function, wanted)
        elif cls is not None:
            continue
        elif last in _MAINS and set(_required(function)) <= _GIVEN:
            mains.append(name)
        elif (
            (reaches or (is_own and any(isinstance(n, ast.FunctionDef) for n in inner)))
            and not _required(function)
            and not _SETTINGS.fullmatch(last)
        ):
            others.append(name)
    return Entries(
        any(_acts(s, own | wanted) or (is_own and _computes(s)) for s in body)
        or (is_own and not own),
        any(isinstance(s, ast.If) and is_main_guard(s.test) for s in body),
        tuple(mains),
        (*_varied(tests), *_varied(of_lists)),
        tuple(others),
    )


def _functions(
    body: list[ast.stmt],
) -> Iterator[tuple[str, ast.FunctionDef, ast.ClassDef | None]]:
    """Yield the functions at the top level, and the tests of its classes with their class."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name):
                yield name, statement, None
            case ast.ClassDef(name=name, body=inner):
                for method in inner:
                    match method:
                        case ast.FunctionDef(name=test) if test.startswith("test"):
                            yield f"{name}.{test}", method, statement


def _required(function: ast.FunctionDef) -> list[str]:
    return [p.arg for p, default in with_defaults(function.args) if default is None]


def _uses(function: ast.FunctionDef, wanted: frozenset[str]) -> set[str]:
    """Return the wanted names that a function uses, and the attributes of these."""
    uses: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in wanted:
                uses |= {name, attribute}
            case ast.Name(id=name) if name in wanted:
                uses.add(name)
    return uses


def _varied(tests: dict[str, set[str]]) -> Iterator[str]:
    """Yield the tests, those that use most names that the ones before do not use first."""
    left, used = dict(tests), set[str]()
    while left:
        name = max(left, key=lambda test: (len(left[test] - used), bool(left[test])))
        if len(left) > _MOST_COMPARED:
            name = next(iter(left))
        used |= left.pop(name)
        yield name


def _acts(statement: ast.stmt, wanted: set[str] | frozenset[str]) -> bool:
    """Return whether a statement at the top level is a program, or a part of one."""
    match statement:
        case ast.If(test=test) if is_main_guard(test):
            return True
        case ast.Expr(value=ast.Call(func=function)):
            if (name := dotted_name(function)) == "print":
                return sum(isinstance(node, ast.Call) for node in ast.walk(statement)) > 1
            return not name.startswith(_CONFIGURES) and "DEFINE" not in name
        case ast.For() | ast.While() | ast.With():
            return True
        case ast.Assign() | ast.AnnAssign():
            calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
            return any(not wanted.isdisjoint(read_in(node)) for node in calls)
    return False


def _computes(statement: ast.stmt) -> bool:
    """Return whether a statement assigns what a function of JAX returns, which is shown then."""
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    is_assigned = isinstance(statement, ast.Assign | ast.AnnAssign | ast.If | ast.Try)
    return is_assigned and any(dotted_name(call.func).startswith(_OF_JAX) for call in calls)
