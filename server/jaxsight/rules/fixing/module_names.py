"""The names that a module binds and imports, for code that a fix inserts into it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cached_property

from jaxsight.rules.text.expressions import dotted
from jaxsight.rules.text.statements import imported_by
from jaxsight.source.module import Module
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Edit, Position, Range

_METHODS = frozenset(
    {
        "all", "any", "argmax", "argmin", "astype", "conj", "cumsum", "dot", "flatten", "max",
        "mean", "min", "prod", "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum",
        "swapaxes", "take", "transpose", "var", "view", "set", "add", "multiply", "get",
    }
)  # fmt: skip
"""Methods of arrays without side effects. Sets have `add` too, but there it returns `None`."""
_BUILTINS = frozenset(
    {"abs", "len", "max", "min", "range", "round", "sum", "float", "int", "tuple"}
)


class NamesOfModule:
    """Names in one chunk of a module, and the module's imports."""

    def __init__(self, module: Module, tree: ast.Module) -> None:
        self.module = module
        self.tree = tree

    @cached_property
    def names(self) -> frozenset[str]:
        """All names of the chunk."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name | ast.arg)]
        names = {node.id if isinstance(node, ast.Name) else node.arg for node in nodes}
        return frozenset(names | {f.qualname.rpartition(".")[2] for _, f in self.module.functions})

    def fresh(self, name: str) -> str:
        """Return a name that is not in use."""
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        return next(each for each in itertools.chain([name], numbered) if each not in self.names)

    @cached_property
    def imports(self) -> dict[str, str]:
        """Local names by the module or function (`jax.numpy`, `jax.jit`) that they refer to."""
        imports: dict[str, str] = {}
        for _, node in self.statements("import"):
            for name, full in imported_by(node):
                imports.setdefault(full, name)
        return imports

    def statements(self, word: str = "") -> Iterator[tuple[int, ast.stmt]]:
        """Yield the module's own statements in chunks with a word, each with its first line."""
        for chunk in self.module.chunks:
            if chunk.broken is None and word in chunk.text:
                for node in tree_of(chunk.text).body:
                    yield chunk.first_line + node.lineno - 1, node

    @property
    def jnp(self) -> str:
        """The name of `jax.numpy` here; empty if it has none."""
        named = self.imports.get("jax.numpy", "")
        return named or (f"{self.imports['jax']}.numpy" if "jax" in self.imports else "")

    @property
    def np(self) -> str:
        """The name of `numpy` here; empty if it has none."""
        return self.imports.get("numpy", "")

    @property
    def lax(self) -> str:
        """The name of `jax.lax` here; without one, `jax.lax`, which `jax_import` imports."""
        return self.imports.get("jax.lax", f"{self.imports.get('jax', 'jax')}.lax")

    def spelled(self, code: str) -> str:
        """Return code with this module's names of `jax`, `jnp`, `jax.nn` and `jax.lax`."""
        jax = self.imports.get("jax", "jax")
        names = {"jnp": self.jnp or "jax.numpy", "jax.lax": self.lax, "jax": jax}
        names["jax.nn"] = self.imports.get("jax.nn", f"{jax}.nn")
        return re.sub(r"\b(jnp|jax\.nn|jax\.lax|jax)(?=\.)", lambda name: names[name[0]], code)

    @property
    def partial(self) -> str:
        """The name of `functools.partial` here; without one, `functools_import` imports it."""
        module = self.imports.get("functools", "functools")
        return self.imports.get("functools.partial", f"{module}.partial")

    def functools_import(self) -> tuple[Edit, ...]:
        """Return the edit that imports `functools` before other modules if `partial` needs it."""
        return self._needed("functools", "functools.partial")

    def jax_import(self) -> tuple[Edit, ...]:
        """Return the edit that imports `jax` before other modules if `lax` needs it."""
        return self._needed("jax", "jax.lax")

    def _needed(self, module: str, *others: str) -> tuple[Edit, ...]:
        """Return the edit that imports a module, if neither it nor the others are imported."""
        return () if {module, *others} & self.imports.keys() else self.imported(module)

    def imported(self, module: str) -> tuple[Edit, ...]:
        """Return the edit that adds an import before the first one; nothing if there is none."""
        for line, node in self.statements():
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if isinstance(node, ast.Import | ast.ImportFrom) and not future:
                start = Position(line, 0)
                return (Edit(Range(start, start), f"import {module}\n"),)
        return ()

    def is_pure(self, node: ast.AST) -> bool:
        """Return whether an expression may run more often, or never.

        It may if it calls only functions of JAX and NumPy and methods of arrays.
        """
        for call in ast.walk(node):
            if isinstance(call, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
                return False
            if not isinstance(call, ast.Call):
                continue
            name = self.called(call.func)
            is_library = name.startswith(("jax.", "numpy.")) and "debug" not in name
            method = isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
            if not is_library and not method and name not in _BUILTINS:
                return False
        return True

    def called(self, node: ast.expr) -> str:
        """Return the full name of a called function, such as `jax.numpy.sum`.

        A name without an import is returned as written; other expressions give the empty string.
        """
        path = dotted(node)
        if not path:
            return ""
        for module, name in sorted(self.imports.items(), key=lambda import_: -len(import_[1])):
            if path == name or path.startswith(name + "."):
                return module + path[len(name) :]
        return path
