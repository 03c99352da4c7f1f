"""Rename everything in a repro that came from the user: functions, values, scopes, keys, paths."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from jaxsight_repro.emit.repro_file import Repro
from jaxsight_repro.failures import RunFailure

_KEPT = frozenset({"main", "inputs", "stored", "_unpack", "data", "dtype", "shape", "raw"})
"""Names that every repro has."""

_SCOPES = frozenset({"named_scope", "checkpoint_name", "named_call"})

_PATH = re.compile(r"(?:/[\w.+-]+)+(?::\d+)?")
_CLASS = re.compile(r"\b(?:[A-Za-z_][\w.]*\.)?([A-Za-z_]\w*):")
"""The class of an exception in the message of another, without its module."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def anonymized(repro: Repro, failure: RunFailure) -> tuple[Repro, RunFailure]:
    """Return a repro with other names, and its failure with them; comments are dropped."""
    lines = repro.text.split("\n")
    end = lines.index("# ///", 1) + 1
    tree = ast.parse("\n".join(lines[end:]))
    names = _Names()
    for name in _bound(tree):
        names.add(name)
    renamed = _Renamer(names).visit(tree)
    arrays = {names.key(name): array for name, array in repro.arrays.items()}
    prose = names.prose(ast.get_docstring(tree) or "").replace("\\", "\\\\").replace('"', '\\"')
    body = _unparsed(renamed.body[1:])
    text = "\n".join([*lines[:end], f'"""{prose}', '"""', "", body, ""])
    compile(text, "repro", "exec")
    own_class = names.mapping.get(failure.name.rpartition(".")[2])
    message = _CLASS.sub(lambda match: names.of_class(match[1], match[0]), failure.message)
    return Repro(text, arrays), replace(failure, name=own_class or failure.name, message=message)


def _unparsed(body: Sequence[ast.stmt]) -> str:
    """Return the text of statements, with empty lines around functions and after imports."""
    text = ""
    previous: ast.stmt | None = None
    for statement in body:
        apart = isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.If))
        same = type(statement) is type(previous) or previous is None
        imports = isinstance(statement, (ast.Import, ast.ImportFrom))
        together = imports and isinstance(previous, (ast.Import, ast.ImportFrom))
        gap = "\n\n\n" if apart else "\n" if same or together else "\n\n"
        text += (gap if text else "") + ast.unparse(statement)
        previous = statement
    return text


@dataclass(slots=True)
class _Names:
    """The new name of each name of the user's."""

    mapping: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """The new key of each string that is a key of a dictionary, or the name of a scope."""

    def add(self, name: tuple[str, str]) -> None:
        prefix, old = name
        if old not in _KEPT and old not in self.mapping:
            self.mapping[old] = f"{prefix}{len(self.mapping)}"

    def of(self, name: str) -> str:
        return self.mapping.get(name, name)

    def of_class(self, name: str, text: str) -> str:
        """Return the new name of a class before a colon; `text` if the name is none's."""
        new = self.mapping.get(name, "")
        return f"{new}:" if new.startswith("C") else text

    def key(self, text: str) -> str:
        if text in self.mapping:
            return self.mapping[text]
        return self.keys.setdefault(text, f"k{len(self.keys)}")

    def prose(self, text: str) -> str:
        """Return prose without the user's names and paths."""
        paragraphs = [line for line in text.split("\n") if not line.startswith("Captured from ")]
        without_paths = _PATH.sub("path", "\n".join(paragraphs))
        return _WORD.sub(lambda match: self.mapping.get(match[0], match[0]), without_paths)


def _bound(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield a prefix and the name of all that a module binds, but for what it imports."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name):
                yield "f", name
            case ast.ClassDef(name=name, body=body):
                yield "C", name
                for member in body:
                    if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                        yield "a", member.target.id
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield "x", name
            case _:
                pass


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: _Names) -> None:
        self._names = names

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._names.of(node.name)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._names.of(node.name)
        places = ("__module__ = ", "__qualname__ = ")  # where the user's class is defined
        body = [part for part in node.body if not ast.unparse(part).startswith(places)]
        node.body = body or [ast.Pass()]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._names.of(node.arg)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.of(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        is_module = isinstance(node.value, ast.Name) and node.value.id in (
            "jax",
            "jnp",
            "np",
            "lax",
        )
        if not is_module and self._names.of(node.attr).startswith("a"):
            node.attr = self._names.of(node.attr)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_own = isinstance(node.func, ast.Name) and node.func.id in self._names.mapping
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        self.generic_visit(node)
        for keyword in node.keywords:
            if is_own and keyword.arg is not None:
                keyword.arg = self._names.of(keyword.arg)
        if called in _SCOPES:
            for argument in node.args:
                self._rename_text(argument)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        for key in node.keys:
            self._rename_text(key)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        is_environment = isinstance(node.value, ast.Attribute) and node.value.attr == "environ"
        self.generic_visit(node)
        if not is_environment:
            self._rename_text(node.slice)
        return node

    def _rename_text(self, node: ast.expr | None) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = self._names.key(node.value)
