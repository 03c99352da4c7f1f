"""The parameters of the written function: those that shadow an import, and additional ones.

The body of a function whose parameter shadows an import becomes a function of its own, with other
parameter names. Shared functions that need additional arguments move into the written function,
because only that function knows the values that its caller passes in.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from jaxsight_source.calls.signature import BoundCall, Fixed, TracedArgument
from jaxsight_source.text.exprs import IMPORTS, call, substituted
from jaxsight_source.text.layout import WIDTH
from jaxsight_source.text.layout import parameters as texts_of
from jaxsight_source.text.statements import define, lines, return_, roots

SHADOWING = frozenset(IMPORTS) | {"complex", "frozenset", "range", "repr", "slice", "tuple", "type"}
"""Names that the body of a function may use, so that a parameter would shadow them."""

Read = TypeVar("Read", TracedArgument, Fixed)


def bare(parameters: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in a parameter list."""
    names = (parameter.lstrip("*").partition("=")[0] for parameter in parameters)
    return tuple(name for name in names if name not in ("", "/"))


def renamed(inner: BoundCall) -> tuple[BoundCall, dict[str, str]]:
    """Return the call with new names for shadowing parameters, and these by the old names."""
    names = bare(inner.parameters)
    new_names: dict[str, str] = {}
    for name in names:
        if name in SHADOWING:
            new_names[name] = f"{name}_"
            while new_names[name] in names:
                new_names[name] += "_"
    if not new_names:
        return inner, {}

    others = {old: ast.Name(new) for old, new in new_names.items()}

    def read(part: Read) -> Read:
        return replace(part, expr=substituted(part.expr, others))

    return replace(
        inner,
        parameters=tuple(new_names.get(name, name) for name in names),
        arguments=tuple(map(read, inner.arguments)),
        fixed=tuple(map(read, inner.fixed)),
    ), new_names


def apart(main: ast.FunctionDef, name: str, new_names: dict[str, str]) -> ast.FunctionDef:
    """Move the body of a function into a new function `name`, and return that."""
    names = bare(tuple(texts_of(main.args)))
    start = 0 if ast.get_docstring(main) is None else 1
    inner = define(name, [new_names.get(each, each) for each in names], main.body[start:])
    main.body[start:] = [return_(call(name, *map(ast.Name, names)))]
    return inner


def split(
    functions: Sequence[ast.stmt], passed: Iterable[str]
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Split the module's functions into those that can stay and those that need a `passed` name.

    A function needs a name if it, or a function that it calls, reads it.
    """
    needed = set(passed)
    if not needed:
        return list(functions), []
    names = [roots("\n".join(line.text for line in lines([part]))) for part in functions]
    moving = [False] * len(functions)
    while True:
        before = len(needed)
        for index, (part, used) in enumerate(zip(functions, names, strict=True)):
            if not moving[index] and used & needed:
                moving[index] = True
                if isinstance(part, ast.FunctionDef):
                    needed.add(part.name)
        if len(needed) == before:
            break
    return (
        [part for part, moves in zip(functions, moving, strict=True) if not moves],
        [part for part, moves in zip(functions, moving, strict=True) if moves],
    )


_LONGEST = 400
"""The maximum length of a reason; those of other packages may have thousands of characters."""


def explained(
    placeholders: Sequence[tuple[str, str]], fixed: Sequence[tuple[str, str]] = ()
) -> str:
    """Return a docstring that explains additional or unchecked arguments, or an empty string."""
    rows = [
        textwrap.fill(
            f"{name}: {textwrap.shorten(why, _LONGEST, placeholder=' …')}.",
            WIDTH - 4,  # the docstring's own indentation
            initial_indent="    ",
            subsequent_indent="        ",
            break_on_hyphens=False,
        )
        for name, why in (*placeholders, *fixed)
    ]
    if not rows:
        return ""
    first = (
        "As the original, with arguments for values that cannot be written as source."
        if placeholders
        else "As the original, for fixed values of some arguments."
    )
    return "\n".join([first, "", "Args:", *rows])
