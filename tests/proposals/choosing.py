"""Choose functions of installed libraries by a rule that does not know whether they can be traced.

All public functions at the top level of a library's files that use JAX, compute with an argument
that they require, and have no example inputs by themselves are put in the order of their files and
lines. Of `n` such functions, each `k`-th is chosen, with `k = n // wanted`, from `k // 3` on. Each
further list is chosen in the same way from those that are in no list before it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxsight.examples import choice
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module

PARTS = {
    "optax": ("optax", 14, 10, 16, 14),
    "equinox": ("equinox", 6, 4, 0, 0),
    "flax": ("flax", 8, 5, 11, 13),
    "jax.nn": ("jax/_src/nn", 5, 3, 2, 1),
    "jax.scipy": ("jax/_src/scipy", 8, 7, 11, 14),
    "numpyro": ("numpyro", 11, 8, 16, 16),
    "diffrax": ("diffrax", 2, 2, 2, 2),
    "lineax": ("lineax", 3, 2, 0, 0),
    "optimistix": ("optimistix", 3, 2, 2, 0),
}
"""The folder of each library, and how many of its functions are in each list: 60, 40, 60 and 60.

A list has none of the libraries whose functions are all in the lists before it.
"""
LISTS = ("first", "second", "third", "fourth")

_SKIPPED = re.compile(r"(?:^|/)(?:tests?|testing|conftest|examples?|benchmarks?|docs?)(?:[/._]|$)")
_TEST = re.compile(r"_test\.py$")
_JAX = re.compile(r"\b(?:jnp|jax|lax|jr|jrandom|jsp)\.\w")
_COMPUTES = frozenset(("jnp", "jax", "lax", "jsp"))
_ATTRIBUTES = frozenset(("shape", "ndim", "dtype", "size", "T", "at", "sum", "mean", "reshape"))
_ARRAY = re.compile(
    r"Array|Float|Int\b|Num\b|Real|Inexact|Shaped|Complex|Updates|Params|PyTree|Scalar|Numeric|ndarray"
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A function of a library: the file is relative to `site-packages`."""

    library: str
    file: str
    function: str

    def __str__(self) -> str:
        return f"{self.library} {self.file}:{self.function}"

    @staticmethod
    def read(line: str) -> Chosen:
        """Return what a line of a list says."""
        library, _, place = line.strip().partition(" ")
        file, _, function = place.rpartition(":")
        return Chosen(library, file, function)


def eligible(packages: Path, library: str, *, calls: bool = False) -> list[Chosen]:
    """Return the functions of a library that the rule admits; with `calls`, `__call__` methods too.

    A library that is not in `PARTS` is the name of its folder.
    """
    folder = PARTS[library][0] if library in PARTS else library
    found: list[Chosen] = []
    for file in sorted((packages / folder).rglob("*.py")):
        name = file.relative_to(packages).as_posix()
        if _SKIPPED.search(name) or _TEST.search(name):
            continue
        module = Module.parse(file.read_text(encoding="utf-8"))
        found += [
            Chosen(library, name, function.qualname) for function in _functions(module, calls)
        ]
    return found


def _functions(module: Module, calls: bool) -> Iterator[Function]:
    for chunk, function in module.functions:
        name = function.qualname
        if name.startswith("_") or function.refused:
            continue
        if "." in name and not (calls and re.fullmatch(r"[A-Za-z]\w*\.__call__", name)):
            continue
        lines = chunk.text.split("\n")
        body = "\n".join(lines[function.body_start.line : function.range.end.line + 1])
        if not _JAX.search(body) or choice.of(function, sizes={}).sets:
            continue
        definition = next(
            node
            for node in ast.walk(ast.parse(chunk.text))
            if isinstance(node, ast.FunctionDef) and node.name == name.rpartition(".")[2]
        )
        computed = _computed(definition)
        if any(
            p.default is None
            and not p.kind.startswith("var")
            and p.name in computed
            and (p.annotation is None or _ARRAY.search(p.annotation))
            for p in function.parameters
        ):
            yield function


def _computed(function: ast.FunctionDef) -> set[str]:
    """Return the names that a function computes with, outside of the functions defined in it."""
    names: set[str] = set()
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        stack += ast.iter_child_nodes(node)
        match node:
            case ast.Call(func=func, args=args) if _root(func) in _COMPUTES:
                names |= {arg.id for arg in args if isinstance(arg, ast.Name)}
            case ast.BinOp(left=left, right=right):
                names |= {side.id for side in (left, right) if isinstance(side, ast.Name)}
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id=name)):
                names.add(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in _ATTRIBUTES:
                names.add(name)
    return names


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def chosen(packages: Path) -> dict[str, list[Chosen]]:
    """Return the lists by name."""
    lists: dict[str, list[Chosen]] = {name: [] for name in LISTS}
    for library, (_, *counts) in PARTS.items():
        left = eligible(packages, library)
        for functions, wanted in zip(lists.values(), counts, strict=True):
            if wanted:
                functions += _each(left, wanted)
                left = [function for function in left if function not in functions]
    return lists


def _each(functions: list[Chosen], wanted: int) -> list[Chosen]:
    k = max(len(functions) // wanted, 1)
    return functions[k // 3 :: k][:wanted]
