"""Which functions are worth proposing example inputs for without being asked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from jaxsight.examples.signature import Signature
from jaxsight.queries.documents import Document, Subject
from jaxsight.source.functions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.statements import tree_of

MOST = 20
"""Functions of one file."""
_LIBRARIES = frozenset({"jax", "jaxlib"})
_CONFIGURES = ("jax.config.", "config.", "logging.", "warnings.")
_TESTS = re.compile(r"test_.*|.*_test|conftest|tests")
_NOT_TRACED = re.compile(r"main|test_\w*|setup\w*|pytest_\w*|_?plot\w*")


def worth_proposing(
    document: Document, subjects: Sequence[Subject]
) -> Iterator[tuple[ModuleChunk, Function]]:
    """Yield the functions that use JAX and have no example inputs, at most `MOST`.

    Tests, `main`, methods and nested functions are none of them, nor are functions of scripts:
    nobody asked to run these.
    """
    module = document.module
    if _TESTS.fullmatch(PurePath(document.path).stem) or any(map(_acts, module.chunks)):
        return
    uses_jax = _jax_names(module)
    if uses_jax is None:
        return
    having = {(subject.chunk.first_line, subject.name) for subject in subjects}
    count = 0
    for chunk, function in module.functions:
        if (chunk.first_line, function.qualname) in having or function.refused:
            continue
        name = function.qualname.rpartition(".")[2]
        if function.kind != "function" or _NOT_TRACED.fullmatch(name):
            continue
        if not Signature(function).required or not uses_jax.search(_body(chunk, function)):
            continue
        yield chunk, function
        count += 1
        if count == MOST:
            return


def _acts(chunk: ModuleChunk) -> bool:
    """Return whether a statement at the top level does something, as those of scripts do."""
    if chunk.broken is not None:
        return False
    for statement in tree_of(chunk.text).body:
        match statement:
            case ast.Expr(value=ast.Call(func=function)):
                if not ast.unparse(function).startswith(_CONFIGURES):
                    return True
            case ast.For() | ast.While() | ast.With() | ast.Delete():
                return True
    return False


def _body(chunk: ModuleChunk, function: Function) -> str:
    lines = chunk.text.split("\n")
    return "\n".join(lines[function.body_start.line : function.range.end.line + 1])


def _jax_names(module: Module) -> re.Pattern[str] | None:
    """Return a pattern for the names that the module imports from JAX, and for uses of arrays.

    Returns `None` if the module imports nothing from JAX.
    """
    names: set[str] = set()
    for chunk in module.chunks:
        if chunk.broken is not None or not chunk.name_effects.imports:
            continue
        for alias, name in chunk.name_effects.imports:
            if name.partition(".")[0] in _LIBRARIES:
                names.add(alias)
    if not names:
        return None
    imported = "|".join(map(re.escape, sorted(names)))
    return re.compile(rf"\b(?:{imported})\b|\.(?:shape|reshape|at\[|astype|T)\b")
