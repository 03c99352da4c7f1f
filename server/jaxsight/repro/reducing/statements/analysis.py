"""Runs an instrumented copy of a text: which functions were running, and the types of values."""

from __future__ import annotations

import ast
import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxsight.repro.failures import failure_in
from jaxsight.repro.reducing import children
from jaxsight.repro.reducing.children import ChildLimits
from jaxsight.repro.reducing.statements.texts import FileText, functions, own

_RECORD = "__record__"
_DEEPEST = 3
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was observed in a run.

    Attributes:
        frames: the functions of the file that were running when it failed, innermost first: the
            line of each definition, and the line that was running.
        values: expressions of the last values of names, by the line of the function's definition
            (0 for the module).
    """

    frames: list[tuple[int, int]] = field(default_factory=list)
    values: Mapping[tuple[int, str], str] = field(default_factory=dict)


def analyse(text: FileText, file: str, limits: ChildLimits) -> Analysis:
    """Run an instrumented copy of a text in a child."""
    _, output = children.run(lambda: _observe(text, file), limits)
    try:
        frames, values = json.loads(output)
    except ValueError:
        return Analysis()
    return Analysis(
        [(first, line) for first, line in frames],
        {(first, name): expression for first, name, expression in values},
    )


def _observe(text: FileText, file: str) -> bytes:
    values: dict[tuple[int, str], str] = {}

    def record(first: int, names: Mapping[str, object]) -> None:
        for name, value in names.items():
            expression = expression_of(value)
            if expression is not None:
                values[first, name] = expression

    tree = text.tree
    lines: dict[tuple[str, int], int] = {}
    for each in functions(tree):
        first = min(part.lineno for part in (each, *each.decorator_list))  # of its code
        lines[each.name, first] = each.lineno
    _Instrument().visit(tree)
    code = compile(ast.fix_missing_locations(tree), file, "exec")
    namespace = {"__name__": "__main__", "__file__": file, _RECORD: record}
    frames: list[tuple[int, int]] = []

    def run() -> None:
        try:
            exec(code, namespace)  # noqa: S102 - runs user code
        except BaseException as error:
            for frame, line in traceback.walk_tb(error.__traceback__):
                code_ = frame.f_code
                if code_.co_filename == file:
                    first = lines.get((code_.co_name, code_.co_firstlineno), 0)
                    frames.insert(0, (first, line))
            raise

    failure_in(run)
    return json.dumps([frames, [[*key, value] for key, value in values.items()]]).encode()


class _Instrument(ast.NodeTransformer):
    """Inserts a call after each assignment, and at the beginning of each function."""

    def __init__(self) -> None:
        self._first = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Record the arguments of a function, and what it assigns."""
        around, self._first = self._first, node.lineno
        arguments = node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        names += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
        self.generic_visit(node)
        if names:
            node.body.insert(0, self._call(names, node.body[0]))
        self._first = around
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Leave lambdas as they are."""
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Record what an assignment assigns."""
        return self._with_call(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Record what an assignment updates."""
        return self._with_call(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Record what an assignment assigns."""
        return self._with_call(node) if node.value is not None else node

    def _with_call(self, node: ast.stmt) -> Any:
        names = {
            n.id for n in own(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        return [node, self._call(sorted(names), node)] if names else node

    def _call(self, names: list[str], near: ast.stmt) -> ast.stmt:
        entries = ", ".join(f"{name!r}: {name}" for name in names)
        statement = ast.parse(f"{_RECORD}({self._first}, {{{entries}}})").body[0]
        for node in ast.walk(statement):
            ast.copy_location(node, near)
        return statement


def expression_of(value: object, depth: int = 0) -> str | None:
    """Return an expression of a value of the same type, with zeros for numbers in arrays."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        text = repr(value)
        return text if len(text) < _LONGEST and "inf" not in text and "nan" not in text else None
    if isinstance(value, (jax.Array, jax.core.Tracer)):
        return _array(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return f"np.zeros({value.shape}, np.{_name(value.dtype)})"
    if depth < _DEEPEST and type(value) in (tuple, list, dict):
        return _container(value, depth + 1)
    return None


def _name(dtype: object) -> str:
    name = str(dtype)
    return "bool_" if name == "bool" else name


def _array(value: Any) -> str | None:
    try:
        dtype, shape = value.dtype, tuple(map(int, value.shape))
    except (AttributeError, TypeError, ValueError):
        return None
    if jax.numpy.issubdtype(dtype, jax.dtypes.prng_key):
        return "jax.random.key(0)" if not shape else None
    return f"jnp.zeros({shape}, jnp.{_name(dtype)})"


def _container(value: Any, depth: int) -> str | None:
    if isinstance(value, dict):
        keys = [repr(key) for key in value]
        parts = [expression_of(part, depth) for part in value.values()]
        if any(part is None for part in parts) or not all(isinstance(key, str) for key in value):
            return None
        return (
            "{" + ", ".join(f"{key}: {part}" for key, part in zip(keys, parts, strict=True)) + "}"
        )
    parts = [expression_of(part, depth) for part in value]
    written = [part for part in parts if part is not None]
    if len(written) < len(parts) or sum(map(len, written)) > _LONGEST:
        return None
    if isinstance(value, list):
        return f"[{', '.join(written)}]"
    return f"({', '.join(written)}{',' if len(written) == 1 else ''})"
