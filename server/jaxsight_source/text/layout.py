"""Formats expressions and statements as `ruff format` does, with a line length of 88.

Knows nothing of JAX. The rules are Black's: an expression that fits stays on one line; else the
last bracket is broken, with the arguments of a call on one line if they fit, or one per line with a
trailing comma, and the items of a collection always one per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jaxsight_source.text.exprs import (
    Atom,
    Attribute,
    Binary,
    Call,
    Choice,
    Each,
    Expr,
    Index,
    Item,
    Keyword,
    Lambda,
    Once,
    Pair,
    Sequence_,
    Slot,
    Star,
    Unary,
)

WIDTH = 88
"""The default line length of Black and ruff, in columns."""

WIDEST = 100
"""The maximum width of a line with a `# fmt: skip` comment, in columns: `WIDTH` and the comment."""

FEWEST_FILLED = 3
"""The minimum number of short items that share lines, instead of one line per item: two may be a
pair, of which each has a meaning."""

STEP = "    "

_CLOSING = {"(": ")", "[": "]", "{": "}"}

_PRECEDENCE = {
    "|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5,
    "*": 6, "/": 6, "//": 6, "%": 6, "@": 6, "**": 8,
    "<": 0, "<=": 0, ">": 0, ">=": 0, "==": 0, "!=": 0,
}  # fmt: skip
_UNARY = 7
_TIGHT = 9


def flat(expr: Item) -> str:
    """Return an expression on one line, however long."""
    if type(expr) is Atom:  # the common kinds first: this runs several times for every expression
        return expr.text
    match expr:
        case Call(function, exprs):
            name = function.text if type(function) is Atom else _tight(function)
            return f"{name}({_joined(exprs)})"
        case Keyword(name, value):
            return f"{name}={flat(value)}"
        case Sequence_("(", (only,)):
            return f"({flat(only)},)"
        case Sequence_(bracket, exprs):
            return f"{bracket}{_joined(exprs)}{_CLOSING[bracket]}"
        case Index(value, exprs):
            return f"{_tight(value)}[{_joined(exprs)}]"
        case Attribute(value, name):
            return f"{_tight(value)}.{name}"
        case Binary(operator, left, right):
            level = _PRECEDENCE[operator]
            first = _at(left, level + 1 if level == 0 or operator == "**" else level)
            second = _at(right, _UNARY if operator == "**" else level + 1)
            is_tight = operator == "**" and _simple(left) and _simple(right)
            return f"{first}**{second}" if is_tight else f"{first} {operator} {second}"
        case Unary(operator, Binary("**") as power):
            return f"{operator}({flat(power)})"
        case Unary(operator, value):
            return f"{operator}{_at(value, _UNARY)}"
        case Slot(index):
            return f"a{index}"
        case Pair(key, value):
            return f"{flat(key)}: {flat(value)}"
        case Star(value):
            return f"*{flat(value)}"
        case Once(_, value):
            return flat(value)
        case Each(body, target, values):
            return f"{flat(body)} for {target} in {flat(values)}"
        case Choice(single, absent, total):
            return f"{flat(single)} if {flat(absent)} is None else {flat(total)}"
        case Lambda((), body):
            return f"lambda: {flat(body)}"
        case Lambda(parameters, body):
            return f"lambda {', '.join(parameters)}: {flat(body)}"
        case _:
            raise TypeError(f"not an expression: {expr!r}")


def _simple(expr: Expr) -> bool:
    """Return whether `**` has no spaces around an operand: names, numbers, attribute chains."""
    match expr:
        case Unary(_, value):
            return _simple(value)
        case Attribute(value, _):
            return _simple(value)
        case Atom() | Slot():
            return True
        case _:
            return False


def _joined(exprs: Iterable[Item]) -> str:
    return ", ".join([flat(part) for part in exprs])


def precedence(expr: Expr) -> int:
    match expr:
        case Binary(operator, _, _):
            return _PRECEDENCE[operator]
        case Unary():
            return _UNARY
        case Lambda() | Choice():
            return -1
        case Atom(text) if text[:1] == "-":
            return _UNARY
        case _:
            return _TIGHT


def _at(expr: Expr, level: int) -> str:
    text = flat(expr)
    return f"({text})" if precedence(expr) < level else text


def _tight(expr: Expr) -> str:
    text = flat(expr)
    if isinstance(expr, Atom) and text[:1].isalpha():
        return text
    if precedence(expr) < _TIGHT:
        return f"({text})"
    if isinstance(expr, Atom) and text.isdigit():
        return f"({text})"  # `2.real` is not valid Python
    return text


def broken(expr: Item, indent: str, before: str, after: str) -> list[str]:
    """Return the lines of `before` + item + `after`, the first and last at `indent`.

    Return a single line if that fits.
    """
    line = f"{indent}{before}{flat(expr)}{after}"
    if len(line) <= WIDTH:
        return [line]
    inner = indent + STEP
    match expr:
        case Keyword(name, value):
            return broken(value, indent, f"{before}{name}=", after)
        case Pair(key, value):
            return broken(value, indent, f"{before}{flat(key)}: ", after)
        case Star(value):
            return broken(value, indent, f"{before}*", after)
        case Call(function, (_, *_) as exprs):
            return [
                f"{indent}{before}{_tight(function)}(",
                *_arguments(exprs, inner),
                f"{indent}){after}",
            ]
        case Index(value, (_, *_) as exprs):
            return [
                f"{indent}{before}{_tight(value)}[",
                *_arguments(exprs, inner),
                f"{indent}]{after}",
            ]
        case Attribute(Call() as value, name):
            return broken(value, indent, before, f".{name}{after}")
        case Sequence_(bracket, (_, *_) as exprs):
            if len(line) <= WIDEST and _is_filled(exprs):
                row = Filled(line)
                row.alone = [
                    f"{indent}{before}{bracket}",
                    *(f"{inner}{flat(part)}," for part in exprs),
                    f"{indent}{_CLOSING[bracket]}{after}",
                ]
                return [row]
            return [
                f"{indent}{before}{bracket}",
                *_one_per_line(exprs, inner),
                f"{indent}{_CLOSING[bracket]}{after}",
            ]
        case Lambda(parameters, body):
            head = f"lambda {', '.join(parameters)}: " if parameters else "lambda: "
            return broken(body, indent, before + head, after)
        case Binary():
            first, *following = _operands(expr, indent)
            *between, last = [f"{indent}{before}{first.removeprefix(indent)}", *following]
            return [*between, f"{last}{after}"]
        case Atom(text) if len(pieces := _pieces(text, WIDTH - len(inner))) > 1:
            rows = [f"{inner}{piece}" for piece in pieces]
            return [f"{indent}{before}(", *rows, f"{indent}){after}"]
        case _:
            return [line]


def _pieces(text: str, width: int) -> list[str]:
    """Split a string literal after spaces into adjacent literals; return anything else as it is."""
    quote = text[:1]
    if quote not in ("'", '"') or text[1:2] == quote or text[-1] != quote:
        return [text]
    rows = [""]
    for word in re.split(r"(?<= )", text[1:-1]):
        if rows[-1] and len(rows[-1]) + len(word) + 2 > width:
            rows.append("")
        rows[-1] += word
    return [f"{quote}{row}{quote}" for row in rows]


def _arguments(exprs: tuple[Item, ...], indent: str) -> list[str]:
    together = indent + _joined(exprs)
    return [together] if len(together) <= WIDTH else _one_per_line(exprs, indent)


def _one_per_line(exprs: Iterable[Item], indent: str) -> list[str]:
    match list(exprs):
        case [Each(body, target, values)]:
            after = broken(values, indent, f"for {target} in ", "")
            return [*broken(body, indent, "", ""), *after]
        case exprs:
            pass
    if _is_filled(exprs):
        return filled(map(flat, exprs), indent)
    return [line for part in exprs for line in broken(part, indent, "", ",")]


class Filled(str):
    """A line with as many names as fit, although `ruff format` would put each on its own line."""

    __slots__ = ("alone",)
    alone: list[str]
    """The lines that `ruff format` would write."""


def filled(names: Iterable[str], indent: str) -> list[str]:
    """Return lines of names with commas, as many on each line as fit."""
    rows: list[list[str]] = []
    for name in names:
        if (
            rows
            and len(indent) + sum(len(placed) + 2 for placed in (*rows[-1], name)) - 1 <= WIDEST
        ):
            rows[-1].append(name)
        else:
            rows.append([name])
    lines = []
    for row in rows:
        line = Filled(f"{indent}{', '.join(row)},")
        line.alone = [f"{indent}{name}," for name in row]
        lines.append(line)
    return list(lines)


def kept(rows: list[str]) -> list[str]:
    """Return the lines of a statement, with `# fmt: skip` if `ruff format` would change them."""
    if len(rows) == 1 or not any(isinstance(row, Filled) for row in rows):
        return rows
    last = f"{rows[-1]}  # fmt: skip"
    if len(last) <= WIDEST:
        return [*rows[:-1], last]
    return [line for row in rows for line in (row.alone if isinstance(row, Filled) else [row])]


def _is_filled(exprs: Sequence[Item]) -> bool:
    """Return whether items share as few lines as possible."""
    inside = [part.value if isinstance(part, Star) else part for part in exprs]
    return len(inside) >= FEWEST_FILLED and all(
        isinstance(part, Atom) and len(part.text) <= WIDTH // 2 for part in inside
    )


def assign(targets: str | Sequence_, value: Expr, indent: str) -> list[str]:
    """Return the lines of `target = value`; a tuple of targets loses its parentheses if it fits."""
    if isinstance(targets, str):
        return _wrapped(value, indent, f"{targets} = ")
    text = flat(targets)
    if len(targets.items) > 1:
        text = text[1:-1]
    if len(f"{indent}{text} = {_head(value)}") <= WIDTH:
        return _wrapped(value, indent, f"{text} = ")
    *first, last = broken_always(targets, indent)
    lines = _wrapped(value, indent, f"{last.removeprefix(indent)} = ")
    return [*first, *lines]


def _head(value: Expr) -> str:
    """Return the part of a value that must stay on its first line."""
    match value:
        case Call(function, (_, *_)):
            return f"{_tight(function)}("
        case Index(inside, (_, *_)):
            return f"{_tight(inside)}["
        case Sequence_(bracket, (_, *_)):
            return bracket
        case _:
            return flat(value)


def broken_always(sequence: Sequence_, indent: str) -> list[str]:
    """Return a collection on several lines, even if it fits on one."""
    return [
        f"{indent}{sequence.bracket}",
        *_one_per_line(sequence.items, indent + STEP),
        f"{indent}{_CLOSING[sequence.bracket]}",
    ]


def returned(value: Expr, indent: str) -> list[str]:
    """Return the lines of `return value`; a tuple loses its parentheses if it fits."""
    match value:
        case Sequence_("(", (_, _, *_) as exprs) if not any(
            isinstance(part, Star) for part in exprs
        ):
            line = f"{indent}return {_joined(exprs)}"
            if len(line) <= WIDTH:
                return [line]
        case _:
            pass
    return _wrapped(value, indent, "return ")


def _wrapped(value: Expr, indent: str, before: str) -> list[str]:
    """Return the lines of `before` + value; a value without a bracket to break gets parentheses."""
    line = f"{indent}{before}{flat(value)}"
    if len(line) <= WIDTH:
        return [line]
    if isinstance(value, (Binary, Unary)):
        match value:
            case Binary(operator, left, (Call(_, (_, *_)) | Index()) as last) if (
                precedence(value.left) > _PRECEDENCE[value.operator]
            ):
                head = f"{before}{_at(left, _PRECEDENCE[operator])} {operator} "
                if len(f"{indent}{head}{_head(last)}") <= WIDTH:
                    return broken(last, indent, head, "")
            case _:
                pass
        inner = indent + STEP
        return [f"{indent}{before}(", *broken(value, inner, "", ""), f"{indent})"]
    if _is_chain(value):
        inner = indent + STEP
        if len(f"{inner}{flat(value)}") <= WIDTH:
            return [f"{indent}{before}(", f"{inner}{flat(value)}", f"{indent})"]
    if isinstance(value, (Call, Index)) and len(f"{indent}{before}{_head(value)}") > WIDTH:
        inner = indent + STEP
        if len(f"{inner}{_head(value)}") <= WIDTH:
            return [f"{indent}{before}(", *broken(value, inner, "", ""), f"{indent})"]
    return broken(value, indent, before, "")


def _is_chain(value: Expr) -> bool:
    """Return whether an expression is an attribute of a name or index, without a call to break."""
    if not isinstance(value, Attribute):
        return False
    inside: Expr = value
    while isinstance(inside, (Attribute, Index)):
        inside = inside.value
    return isinstance(inside, Atom)


def _operands(value: Binary, indent: str) -> list[str]:
    """Return a chain of operators, each at the start of a line."""
    level = _PRECEDENCE[value.operator]
    rows: list[str] = []
    left: Expr = value
    while isinstance(left, Binary) and _PRECEDENCE[left.operator] == level:
        right = left.right
        before = f"{left.operator} "
        if precedence(right) <= level:
            rows[:0] = [f"{indent}{before}({flat(right)})"]
        else:
            rows[:0] = broken(right, indent, before, "")
        left = left.left
    return [*broken(left, indent, "", ""), *rows]


def definition(name: str, parameters: tuple[str, ...], indent: str) -> list[str]:
    """Return the lines of `def name(parameters):`."""
    line = f"{indent}def {name}({', '.join(parameters)}):"
    if len(line) <= WIDTH:
        return [line]
    inner = indent + STEP
    together = inner + ", ".join(parameters)
    if len(together) <= WIDTH and not parameters[-1].startswith("*,"):
        return [f"{indent}def {name}(", together, f"{indent}):"]
    rows = [f"{inner}{parameter}," for parameter in parameters]
    if len(parameters) >= FEWEST_FILLED:
        rows = filled(parameters, inner)
    return [f"{indent}def {name}(", *rows, f"{indent}):"]
