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

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def touches_others(text: str | bytes, module: ModuleType) -> bool:
    """Return whether importing `module`, which has been imported from a text, may touch others."""
    return any(map(_notifies_bases, vars(module).values())) or _reads_touching(text)


@functools.lru_cache(_KEPT)
def _reads_touching(text: str | bytes) -> bool:
    try:
        reader = _Reader()
        reader.visit(ast.parse(text))
    # What cannot be read may do anything.
    except (SyntaxError, ValueError, RecursionError):
        return True
    return reader.touches


def _notifies_bases(value: object) -> bool:
    """Return whether the definition of a class called code of the project."""
    if not isinstance(value, type):
        return False
    bases = type.mro(value)[1:]
    return code_origins.is_users(type(value)) or any(
        "__init_subclass__" in vars(base) and code_origins.is_users(base) for base in bases
    )


class _Reader(ast.NodeVisitor):
    """Reads the statements that an import runs, and which names refer to objects of others."""

    def __init__(self) -> None:
        self.touches = False
        self._others: set[str] = set()
        """Names of the project's modules, of what is in them, and of what was made of these."""
        self._own: set[str] = set(vars(builtins)) - _RUN_ANYTHING
        self._modules: set[str] = set()
        """Names of installed modules, whose attributes others see too."""
        self._star = False
        """Whether any name may be another module's."""

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            top, bound = alias.name.partition(".")[0], alias.asname or alias.name
            if isinstance(node, ast.Import):
                bound = alias.asname or top
            else:
                top = (node.module or "").partition(".")[0] if not node.level else ""
            # A relative import has no top-level name, and is the project's own.
            is_users = not top or code_origins.of_module(top) == code_origins.USER
            if bound == "*":
                self._star |= is_users
            elif is_users or top in _REACH_ANYTHING:
                self._others.add(bound)
            else:
                self._own.add(bound)
                self._modules.add(bound)

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.touches |= any(map(self._is_of_others, node.decorator_list))
        # The body does not run yet.
        for outside in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if outside is not None:
                self.visit(outside)
        self._own.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Leave out its body, which does not run yet."""

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.touches |= any(map(self._is_of_others, node.decorator_list))
        self.generic_visit(node)
        self._own.add(node.name)

    def visit_Call(self, node: ast.Call) -> None:
        self.touches |= self._is_of_others(node)
        self.generic_visit(node)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        self.touches |= any(self._is_of_others(item.context_expr) for item in node.items)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign | ast.For | ast.Delete) -> None:
        value = getattr(node, "value", None) or getattr(node, "iter", None)
        for target in node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]:
            self._bind(target, value)
        self.generic_visit(node)

    visit_AnnAssign = visit_For = visit_Delete = visit_Assign

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.touches |= self._is_of_others(node.target) or self._is_in_module(node.target)
        self.generic_visit(node)

    def _bind(self, target: ast.expr, value: ast.expr | None) -> None:
        if not isinstance(target, ast.Name | ast.Tuple | ast.List | ast.Starred):
            self.touches |= self._is_of_others(target) or self._is_in_module(target)
            return
        names = {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
        if value is not None and self._is_of_others(value):
            self._others |= names
        else:
            self._own |= names

    def _is_of_others(self, node: ast.AST) -> bool:
        """Return whether an expression names something of another module, outside of functions."""
        return any(
            name.id in self._others
            or (self._star and name.id not in self._own)
            or (name.id in _RUN_ANYTHING)
            for name in _names(node)
        )

    def _is_in_module(self, target: ast.expr) -> bool:
        """Return whether an assignment changes an installed module, or something unnamed."""
        names = [name.id for name in _names(target)]
        return not names or not self._modules.isdisjoint(names)


def _names(node: ast.AST) -> Iterator[ast.Name]:
    if isinstance(node, ast.Name):
        yield node
    elif not isinstance(node, _INNER):
        for child in ast.iter_child_nodes(node):
            yield from _names(child)


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
