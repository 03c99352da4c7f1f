"""What the engine knows of a function from its text alone: where it stands, its parameters, its
docstring.

All ranges are relative to the chunk that holds the function (line 0 is the chunk's first line): a
chunk that moves keeps its functions. Nothing here may look at values; those come from a trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxsight.engine.text import Position, Range

ParameterKind = Literal[
    "positional_only", "positional", "var_positional", "keyword_only", "var_keyword"
]
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
    """The source text of a docstring between its quotes, as written (escapes not resolved), and
    where that begins.
    """

    start: Position
    text: str


@dataclass(frozen=True, slots=True)
class Function:
    """A `def` at the top level, in a class, or nested in another function.

    `qualname` is Python's (`Model.__call__`, `outer.<locals>.inner`). `refused` says why it cannot
    be traced on its own (`async`, `generator`, `nested`), else it is empty.
    """

    qualname: str
    kind: FunctionKind
    range: Range
    """The whole statement, decorators included."""
    name_range: Range
    body_start: Position
    """Where the body's first statement begins (a docstring is one), for edits that put something
    before it.
    """
    parameters: tuple[Parameter, ...]
    returns: str | None = None
    decorators: tuple[str, ...] = ()
    docstring: Docstring | None = None
    class_docstring: Docstring | None = None
    """Of the class that holds the method: `self` may be given there once for all."""
    static_names: tuple[str, ...] = ()
    """Parameters that a decorating `jax.jit` makes static, names and numbers resolved."""
    refused: str = ""
    body_indent: str = "    "
