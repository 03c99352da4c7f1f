"""Statements of imported modules: which may touch other modules, and which are refused an effect.

Whether the import of a module may touch other modules of the project is read off its text.

What such an import does may depend on what was imported before it: `REG.clear()` does nothing to a
registry that is empty, and that does not show afterwards. So a file that starts again imports all
modules again, in its own order, if one of them may touch others. Modules that only import, define
and compute are shared by all files.

After a statement that is refused an effect, the rest of its module runs. What the statement would
have bound are placeholders, as of a statement of the traced file.
"""

from __future__ import annotations

import ast
import builtins
import functools
import sys
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType

from jaxsight.rewriting import compiling
from jaxsight.rewriting.nodes import assign, call, placed
from jaxsight.text.names import bound_in_scope
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.isolation import code_origins, refusals

_REACH_ANYTHING = frozenset({"sys", "importlib", "builtins", "gc", "inspect"})
"""Modules by which code reaches others without naming them."""

_RUN_ANYTHING = frozenset({"exec", "eval", "globals", "vars", "__import__"})

_KEPT = 256  # texts of modules whose code is kept: others are compiled again


def touches_others(text: str | bytes, module: ModuleType) -> bool:
    """Return whether importing `module`, which has been imported from a text, may touch others."""
    return any(map(_notifies_bases, vars(module).values())) or _reads_touching(text)


@functools.lru_cache(_KEPT)
def _reads_touching(text: str | bytes) -> bool:
    try:
        tree = ast.parse(text)
        return any(_touching(tree))
    # What cannot be read may do anything.
    except (SyntaxError, ValueError, RecursionError):
        return True


def _touching(tree: ast.Module) -> Iterator[bool]:
    """Yield whether a call, an assignment or a decorator that an import runs may touch others.

    It may if it names something that need not be the module's own, nor a library's.
    """
    own = set(vars(builtins)) - _RUN_ANYTHING
    libraries: set[str] = set()
    """Names of installed modules, whose attributes others see too."""
    reaches = False
    """Whether any name may be another module's."""
    for node in _run_on_import(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                bound = {each.asname or each.name.partition(".")[0] for each in node.names}
                if any(map(_reaches_others, _imported(node))):
                    reaches = True
                else:
                    own |= bound
                    libraries |= bound
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                bound = {target.id for target in targets if isinstance(target, ast.Name)}
                own = own | bound if _names(value) <= own else own - bound
            case ast.Name(id=name):
                reaches |= name in _RUN_ANYTHING
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from (reaches and not _names(each) <= own for each in node.decorator_list)
                own.add(node.name)
            case ast.Call() | ast.withitem():
                names = _names(node)
                yield not names.isdisjoint(_RUN_ANYTHING) or (reaches and not names <= own)
            case (
                ast.AugAssign(target=target)
                | (ast.Attribute(ctx=ast.Store() | ast.Del()) as target)
                | (ast.Subscript(ctx=ast.Store() | ast.Del()) as target)
            ):
                names = _names(target)
                yield not names or not names.isdisjoint(libraries) or (reaches and not names <= own)


def _run_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what an import evaluates: not the bodies of functions."""
    yield node
    inside = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
        inside = iter((*node.decorator_list, *defaults))
    for child in inside if not isinstance(node, ast.Lambda) else ():
        yield from _run_on_import(child)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the top-level packages that a statement imports, empty for a relative import."""
    if isinstance(node, ast.ImportFrom):
        yield "" if node.level else (node.module or "").partition(".")[0]
    else:
        yield from (each.name.partition(".")[0] for each in node.names)


def _reaches_others(package: str) -> bool:
    is_users = not package or code_origins.of_module(package) == code_origins.USER
    return is_users or package in _REACH_ANYTHING


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in _run_on_import(node) if isinstance(each, ast.Name)}


def _notifies_bases(value: object) -> bool:
    """Return whether the definition of a class called code of the project."""
    if not isinstance(value, type):
        return False
    bases = type.mro(value)[1:]
    return code_origins.is_users(type(value)) or any(
        "__init_subclass__" in vars(base) and code_origins.is_users(base) for base in bases
    )


_IS_REFUSED, _UNKNOWN = "__jaxsight_refused__", "__jaxsight_unknown__"
"""Builtins that protected statements call; they end in `__`, so that they are never mangled."""

_PLAIN = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.Pass


@functools.lru_cache(_KEPT)
def compiled(text: str | bytes, path: str) -> CodeType:
    """Return a module's code, whose statements go on after one that is refused an effect."""
    return compiling.compiled(text, path, _protect)


def _protect(tree: ast.Module) -> None:
    for index, each in enumerate(tree.body):
        is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not (is_text or isinstance(each, _PLAIN)):
            tree.body[index] = _protected(each)


def install(note: Callable[[str, int, str], None]) -> None:
    """Install what protected statements call.

    Args:
        note: gets the module's name, the line and what the statement would have done.
    """

    def is_refused(first: int, last: int) -> tuple[type[Exception], ...]:
        error = sys.exc_info()[1]
        names = sys._getframe(1).f_globals
        # An empty tuple catches nothing.
        return (Exception,) if error and refusals.cause(error, names, first, last) else ()

    def unknown(first: int, last: int) -> object:
        error = sys.exc_info()[1]
        names = sys._getframe(1).f_globals
        assert error is not None
        what = refusals.cause(error, names, first, last)
        refusals.forget()
        note(names.get("__name__", ""), first, what)
        return placeholders.refused(what)

    setattr(builtins, _IS_REFUSED, is_refused)
    setattr(builtins, _UNKNOWN, unknown)


def _protected(statement: ast.stmt) -> ast.Try:
    """Return a statement whose names become placeholders where it is refused.

    It is `try: STATEMENT`, `except __jaxsight_refused__(3, 4): name = __jaxsight_unknown__(3, 4)`.
    """
    lines = statement.lineno, statement.end_lineno or statement.lineno
    bound = sorted(name for name in {*bound_in_scope(statement)} if name.isidentifier())
    unknown = call(_UNKNOWN, *lines)
    after = assign(unknown, *bound) if bound else ast.Expr(unknown)
    # Python evaluates the classes of an `except` only once something is raised.
    handler = ast.ExceptHandler(call(_IS_REFUSED, *lines), None, [after])
    tried = ast.Try([statement], [placed(handler, statement)], [], [])
    return ast.copy_location(tried, statement)
