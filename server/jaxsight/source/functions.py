"""A function as its text alone describes it: its place, its parameters, its docstring.

All ranges are relative to the chunk that contains the function (line 0 is the chunk's first line),
so a chunk that moves keeps its functions. Values come from a trace, never from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxsight.source.text import Position, Range

ParameterKind = Literal[
    "positional_only", "positional", "var_positional", "keyword_only", "var_keyword"
]
Refused = Literal["", "async", "generator", "nested"]
FunctionKind = Literal["function", "method", "classmethod", "staticmethod", "property"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as written; `annotation` and `default` are their source text."""

    name: str
    kind: ParameterKind
    range: Range
    """The name alone."""
    annotation: str | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Docstring:
    """The source text of a docstring between its quotes, and where it begins.

    The text is as written, with escapes unresolved.
    """

    start: Position
    text: str


@dataclass(frozen=True, slots=True)
class Function:
    """A `def` at the top level, in a class, or nested in another function.

    `qualname` is Python's (`Model.__call__`, `outer.<locals>.inner`). `refused` says why the
    function cannot be traced on its own (`async`, `generator`, `nested`), otherwise it is empty.
    """

    qualname: str
    kind: FunctionKind
    range: Range
    """The whole statement, decorators included."""
    name_range: Range
    body_start: Position
    """The start of the body's first statement, which may be a docstring."""
    parameters: tuple[Parameter, ...]
    returns: str | None = None
    decorators: tuple[str, ...] = ()
    docstring: Docstring | None = None
    class_docstring: Docstring | None = None
    """The docstring of the method's class, which may give `self` for all its methods."""
    static_names: tuple[str, ...] = ()
    """Parameters that a decorating `jax.jit` makes static, by name or number."""
    refused: Refused = ""
    body_indent: str = "    "
