"""A Python module as statements, and its text.

Knows nothing of JAX: passes can change the statements before they are laid out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from jaxsight_source.text.exprs import Expr, Sequence_
from jaxsight_source.text.layout import (
    STEP,
    WIDTH,
    assign,
    broken,
    broken_always,
    definition,
    flat,
    kept,
    returned,
)


@dataclass(slots=True)
class Assign:
    """`targets = value`.

    `equations` are those of the value, for comments and for links to the source.
    """

    targets: str | Sequence_
    value: Expr
    equations: Sequence[Any] = ()
    comment: str = ""
    user_named: bool = False
    """Whether the name is the user's own."""


@dataclass(slots=True)
class Effect:
    """An expression statement, for its effect, or `target[…] = value`."""

    value: Expr
    equations: Sequence[Any] = ()
    target: Expr | None = None
    """Where the value is stored, if it is."""


@dataclass(slots=True)
class Return:
    """`return value`; `equations` are those of expressions that were inlined into it."""

    value: Expr
    equations: Sequence[Any] = ()


@dataclass(slots=True)
class Remark:
    """A comment, one line of text or several."""

    text: str


@dataclass(slots=True)
class Raw:
    """Verbatim lines, relative to the indentation around them."""

    lines: list[str]
    modules: frozenset[str] = frozenset()
    """The modules to import for the names in them."""


@dataclass(slots=True)
class With:
    """`with context:` around statements."""

    context: Expr
    body: list[Statement]


@dataclass(slots=True)
class For:
    """`for target in values:` around statements."""

    target: str | Sequence_
    values: Expr
    body: list[Statement]


@dataclass(slots=True)
class Function:
    """A function with its decorators (`@jax.jit` without the `@`)."""

    name: str
    parameters: tuple[str, ...]
    body: list[Statement] = field(default_factory=list)
    decorators: list[Expr] = field(default_factory=list)
    docstring: str = ""
    runs: bool = False
    """Whether a decorator calls the function where it is defined."""


Statement: TypeAlias = Assign | Effect | Return | Remark | Raw | With | For | Function


class Line(NamedTuple):
    """A line of text, and its equations."""

    text: str
    equations: Sequence[Any] = ()


def lines(
    body: Sequence[Statement], indent: str = "", before: Statement | None = None
) -> list[Line]:
    """Return the statements as formatted lines, to follow the statement `before`."""
    text_lines: list[Line] = []
    for statement, after in itertools.zip_longest(body, body[1:]):
        if before is not None and _is_apart(before, statement, after):
            text_lines += [Line("")] * (1 if indent else 2)
        text_lines += _laid_out(statement, indent)
        before = statement
    return text_lines


def height(body: Sequence[Statement], indent: str) -> int:
    """Return the number of lines of statements."""
    return len(lines(body, indent))


def _is_apart(before: Statement, statement: Statement, after: Statement | None) -> bool:
    """Return whether empty lines precede a statement: around functions with leading comments."""
    if isinstance(statement, Function):
        return not isinstance(before, Remark)
    leads = isinstance(statement, Remark) and isinstance(after, Function)
    return leads or isinstance(before, Function)


def _laid_out(statement: Statement, indent: str) -> list[Line]:
    match statement:
        case Assign(targets, value, equations, quoted):
            rows = kept(assign(targets, value, indent))
            if not quoted:
                return [Line(text, equations) for text in rows]
            comment = _visible(quoted)
            above = []
            if len(rows) == 1 and len(rows[0]) + len(comment) + 4 <= WIDTH:
                rows[0] += f"  # {comment}"
            else:
                above = [Line(f"{indent}# {comment}")]
            return [*above, *(Line(text, equations) for text in rows)]
        case Effect(value, equations, target):
            opening = f"{flat(target)} = " if target is not None else ""
            return [Line(text, equations) for text in kept(broken(value, indent, opening, ""))]
        case Return(value, equations):
            return [Line(text, equations) for text in kept(returned(value, indent))]
        case Remark(text):
            return [Line(f"{indent}# {_visible(row)}".rstrip()) for row in text.splitlines()]
        case Raw(given):
            return [Line(f"{indent}{row}".rstrip()) for row in given]
        case With(context, inside):
            head = [Line(text) for text in kept(broken(context, indent, "with ", ":"))]
            gap = [Line("")] if isinstance(inside[0], Function) else []
            return [*head, *gap, *lines(inside, indent + STEP)]
        case For(target, values, inside):
            return [*_heading(target, values, indent), *lines(inside, indent + STEP)]
        case Function():
            return _function(statement, indent)


def _heading(target: str | Sequence_, values: Expr, indent: str) -> list[Line]:
    """Return the lines of `for target in values:`."""
    heading: list[str] = []
    named = target if isinstance(target, str) else flat(target)[1:-1]
    if isinstance(target, str) or len(f"{indent}for {named} in zip(") <= WIDTH:
        opening = f"for {named} in "
    else:
        *heading, last = broken_always(target, indent)
        heading[0] = f"{indent}for ("
        opening = f"{last.strip()} in "
    heading += broken(values, indent, opening, ":")
    return [Line(text) for text in kept(heading)]


def _function(function: Function, indent: str) -> list[Line]:
    head: list[str] = []
    for decorator in function.decorators:
        head += kept(broken(decorator, indent, "@", ""))
    head += kept(definition(function.name, function.parameters, indent))
    if function.docstring:
        end = "\n" if "\n" in function.docstring else ""
        rows = f'"""{function.docstring}{end}"""'.splitlines()
        head += [f"{indent}{STEP}{row}".rstrip() for row in rows]
        if function.body and isinstance(function.body[0], Function):
            head.append("")
    return [*map(Line, head), *lines(function.body, indent + STEP)]


def _visible(quoted: str) -> str:
    """Return the user's text for a comment, with invisible and reordering characters escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in quoted)


def roots(text: str) -> set[str]:
    """Return the first names of the expressions in a module's text, to find its imports."""
    return set(re.findall(r"(?<![\w.\"'])([A-Za-z_]\w*)", text))
