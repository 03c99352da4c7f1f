"""Which functions are worth proposing example inputs for without being asked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from jaxsight.examples.jax_use import JaxUse
from jaxsight.examples.signature import Signature
from jaxsight.queries.documents import Document, Subject
from jaxsight.source.functions import Function
from jaxsight.source.module import ModuleChunk
from jaxsight.source.statements import tree_of

MOST = 20
"""Functions of one file."""
_CONFIGURES = ("jax.config.", "config.", "logging.", "warnings.")
_TESTS = re.compile(r"test_.*|.*_test|conftest|tests")


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
    jax_use = JaxUse.of(module)
    if jax_use.uses is None:
        return
    having = {(subject.chunk.first_line, subject.name) for subject in subjects}
    count = 0
    for chunk, function in module.functions:
        if (chunk.first_line, function.qualname) in having or function.refused:
            continue
        if function.kind != "function" or not Signature(function).required:
            continue
        if not jax_use.by(chunk, function):
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
