"""What is written behind a magic: options, then a call, which is evaluated but not made."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxsight.text.inert import clause

Converter = Callable[[str], object] | None
"""Makes the value of an option; `None` for one without a value."""

_TOKEN = re.compile(r"\s*(-\w|--[\w-]+)(?:=(\S+))?(?=\s|$)")
_VALUE = re.compile(r"\s*(\S+)")


class BadLine(Exception):
    """A magic was used in another way than its help says; the message is one clause."""


def parse_options(
    line: str, known: Mapping[str, Converter], short: Mapping[str, str]
) -> tuple[dict[str, object], str]:
    """Return the options at the beginning of a line by name, and the rest.

    Args:
        line: behind the name of a magic.
        known: the options of the magic without `--`.
        short: the names of options with one letter.

    Raises:
        BadLine: there is no such option, or it has no valid value.
    """
    options: dict[str, object] = {}
    while (token := _TOKEN.match(line)) is not None:
        name = short.get(token[1], token[1].removeprefix("--"))
        line, value = line[token.end() :], token[2]
        if name not in known:
            raise BadLine(f"unknown option {token[1]}; known: {' '.join(f'--{n}' for n in known)}")
        convert = known[name]
        if convert is None:
            options[name.replace("-", "_")] = True
            continue
        if value is None:
            found = _VALUE.match(line)
            if found is None:
                raise BadLine(f"option --{name} needs a value")
            line, value = line[found.end() :], found[1]
        try:
            options[name.replace("-", "_")] = convert(value)
        except ValueError:
            raise BadLine(f"invalid value of option --{name}: {clause(value, 40)}") from None
    return options, line.strip()


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A function with its arguments, or a value that is no call: then `is_call` is false."""

    function: object
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    is_call: bool = True


def evaluate_call(text: str, names: dict[str, object]) -> WrittenCall:
    """Return the function and the arguments of a call, which are evaluated; the call is not made.

    Args:
        text: an expression, such as `jax.jit(f)(x, n=3)`.
        names: the user's.

    Raises:
        BadLine: it is no expression, or a name is not defined.
        Exception: any that an argument raises.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise BadLine(f"expected a call such as f(x), got {clause(text, 60)!r}") from error

    def value(node: ast.expr) -> Any:
        expression = ast.fix_missing_locations(ast.Expression(node))
        return eval(compile(expression, "<magic>", "eval"), names)

    try:
        if not isinstance(tree, ast.Call) or _is_staged(tree):
            return WrittenCall(value(tree), is_call=False)
        function = value(tree.func)
        args: list[object] = []
        for each in tree.args:
            args += value(ast.List([each], ast.Load()))
        kwargs: dict[str, object] = {}
        for keyword in tree.keywords:
            given = value(keyword.value)
            kwargs |= {keyword.arg: given} if keyword.arg else given
    except NameError as error:
        raise BadLine(clause(str(error), 80)) from None
    return WrittenCall(function, tuple(args), kwargs)


def _is_staged(call: ast.Call) -> bool:
    """Return whether a call is one of `lower`, `compile` or `trace`, whose result is shown."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("lower", "compile", "trace")
