"""Formats expressions as `ruff format` does, with a line length of 88.

Knows nothing of JAX. The rules are Black's: an expression that fits stays on one line; else the
last bracket is broken, with the arguments of a call on one line if they fit, or one per line with a
trailing comma, and the items of a collection always one per line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from jaxsight_source.text.exprs import SYMBOLS, indices_of, is_atom, quoted

WIDTH = 88
"""The default line length of Black and ruff, in columns."""

WIDEST = 100
"""The maximum width of a line with a `# fmt: skip` comment, in columns: `WIDTH` and the comment."""

FEWEST_FILLED = 3
"""The minimum number of short items that share lines, instead of one line per item: two may be a
pair, of which each has a meaning."""

STEP = "    "

_ROUND, _SQUARE, _CURLY = ("(", ")"), ("[", "]"), ("{", "}")
_BRACKETS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Call: _ROUND, ast.Tuple: _ROUND, ast.GeneratorExp: _ROUND, ast.Subscript: _SQUARE,
    ast.List: _SQUARE, ast.ListComp: _SQUARE, ast.Set: _CURLY, ast.Dict: _CURLY,
    ast.SetComp: _CURLY, ast.DictComp: _CURLY,
}  # fmt: skip

_CHOICE, _OR, _AND, _NOT, _COMPARISON, _UNARY, _POWER, _TIGHT = -4, -3, -2, -1, 0, 7, 8, 9
_PRECEDENCE: dict[type[ast.AST], int] = {
    ast.Lambda: _CHOICE, ast.IfExp: _CHOICE, ast.NamedExpr: _CHOICE, ast.Compare: _COMPARISON,
    ast.Or: _OR, ast.And: _AND, ast.Not: _NOT, ast.USub: _UNARY, ast.UAdd: _UNARY,
    ast.Invert: _UNARY, ast.BitOr: 1, ast.BitXor: 2, ast.BitAnd: 3, ast.LShift: 4, ast.RShift: 4,
    ast.Add: 5, ast.Sub: 5, ast.Mult: 6, ast.Div: 6, ast.FloorDiv: 6, ast.Mod: 6, ast.MatMult: 6,
    ast.Pow: _POWER,
}  # fmt: skip


def flat(expr: ast.AST) -> str:
    """Return an expression on one line, however long."""
    spell = _FLAT.get(type(expr))
    return spell(expr) if spell is not None else ast.unparse(expr)


def precedence(expr: ast.AST) -> int:
    if isinstance(expr, ast.BinOp | ast.UnaryOp | ast.BoolOp):
        return _PRECEDENCE[type(expr.op)]
    if isinstance(expr, ast.Constant):
        return _UNARY if _constant(expr)[:1] == "-" else _TIGHT
    return _PRECEDENCE.get(type(expr), _TIGHT)


def _at(expr: ast.AST, level: int) -> str:
    text = flat(expr)
    return f"({text})" if precedence(expr) < level else text


def _tight(expr: ast.AST) -> str:
    if type(expr) is ast.Name:
        return expr.id
    is_integer = isinstance(expr, ast.Constant) and isinstance(expr.value, int)
    return f"({flat(expr)})" if is_integer else _at(expr, _TIGHT)  # `2.real` is not valid Python


def _constant(expr: ast.Constant) -> str:
    match expr.value:
        case str(text):
            return quoted(text)
        case _ if expr.kind:
            return expr.kind
        case float(number):
            return repr(number).replace("e+", "e")
        case value:
            return "..." if value is ... else repr(value)


def _call(expr: ast.Call) -> str:
    match expr:
        case ast.Call(function, [ast.GeneratorExp() as only], []):
            return f"{_tight(function)}{flat(only)}"
        case _:
            return f"{_tight(expr.func)}({_joined([*expr.args, *expr.keywords])})"


def _tuple(expr: ast.Tuple) -> str:
    return f"({_joined(expr.elts)},)" if len(expr.elts) == 1 else f"({_joined(expr.elts)})"


def _slice(expr: ast.Slice) -> str:
    """Return a slice, with spaces around its colons if a part is no name or number."""
    parts = [expr.lower, expr.upper, *([expr.step] if expr.step else [])]
    shown = [flat(part) if part else "" for part in parts]
    if all(re.fullmatch(r"-?[\w.]*", part) for part in shown):
        return ":".join(shown)
    return re.sub(r" +", " ", " : ".join(shown)).strip()


def _binary(expr: ast.BinOp) -> str:
    level, symbol = _PRECEDENCE[type(expr.op)], SYMBOLS[type(expr.op)]
    if symbol != "**":
        return f"{_at(expr.left, level)} {symbol} {_at(expr.right, level + 1)}"
    gap = "" if _is_simple(expr.left) and _is_simple(expr.right) else " "
    return f"{_at(expr.left, level + 1)}{gap}**{gap}{_at(expr.right, _UNARY)}"


def _is_simple(expr: ast.expr) -> bool:
    """Return whether `**` has no spaces around an operand: names, numbers, attribute chains."""
    if isinstance(expr, ast.UnaryOp):
        return _is_simple(expr.operand)
    if isinstance(expr, ast.Attribute):
        return _is_simple(expr.value)
    return isinstance(expr, ast.Name | ast.Constant)


def _compare(expr: ast.Compare) -> str:
    pairs = zip(expr.ops, expr.comparators, strict=True)
    others = [f" {SYMBOLS[type(op)]} {_at(part, _COMPARISON + 1)}" for op, part in pairs]
    return _at(expr.left, _COMPARISON + 1) + "".join(others)


def _unary(expr: ast.UnaryOp) -> str:
    if isinstance(expr.op, ast.Not):
        return f"not {_at(expr.operand, _COMPARISON)}"
    is_power = isinstance(expr.operand, ast.BinOp) and isinstance(expr.operand.op, ast.Pow)
    return f"{SYMBOLS[type(expr.op)]}{_at(expr.operand, _TIGHT if is_power else _UNARY)}"


def parameters(arguments: ast.arguments) -> list[str]:
    """Return the parameters of a function as in its `def`."""
    plain = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    texts = list(map(_parameter, plain, [*missing, *arguments.defaults]))
    if arguments.posonlyargs:
        texts.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg or arguments.kwonlyargs:
        texts.append("*" + (_parameter(arguments.vararg) if arguments.vararg else ""))
    texts += map(_parameter, arguments.kwonlyargs, arguments.kw_defaults)
    return texts + ([f"**{_parameter(arguments.kwarg)}"] if arguments.kwarg else [])


def _parameter(parameter: ast.arg, default: ast.expr | None = None) -> str:
    text = parameter.arg + (f": {flat(parameter.annotation)}" if parameter.annotation else "")
    equals = " = " if parameter.annotation else "="
    return text if default is None else f"{text}{equals}{flat(default)}"


def _lambda_head(expr: ast.Lambda) -> str:
    named = ", ".join(parameters(expr.args))
    return f"lambda {named}: " if named else "lambda: "


def _comprehension(expr: Any) -> str:
    opening, closing = _BRACKETS[type(expr)]
    return f"{opening}{_body_of(expr)} {' '.join(map(_generator, expr.generators))}{closing}"


def _body_of(expr: Any) -> str:
    if isinstance(expr, ast.DictComp):
        return f"{flat(expr.key)}: {flat(expr.value)}"
    return flat(expr.elt)


def _generator(each: ast.comprehension) -> str:
    conditions = "".join(f" if {_at(condition, _OR)}" for condition in each.ifs)
    return f"for {bare(each.target)} in {_at(each.iter, _OR)}{conditions}"


def bare(expr: ast.expr) -> str:
    """Return a tuple of targets without its brackets, or another expression."""
    is_several = isinstance(expr, ast.Tuple) and len(expr.elts) > 1
    return flat(expr)[1:-1] if is_several else flat(expr)


def _formatted(expr: ast.JoinedStr) -> str:
    shown = ast.unparse(expr)
    return f'f"{shown[2:-1]}"' if shown.startswith("f'") and '"' not in shown else shown


_FLAT: dict[type[ast.AST], Callable[[Any], str]] = {
    ast.Name: lambda expr: expr.id,
    ast.Attribute: lambda expr: vars(expr).get("path") or f"{_tight(expr.value)}.{expr.attr}",
    ast.keyword: lambda each: (
        f"{each.arg}={flat(each.value)}" if each.arg else f"**{_at(each.value, 1)}"
    ),
    ast.Starred: lambda expr: f"*{_at(expr.value, 1)}",
    ast.List: lambda expr: f"[{_joined(expr.elts)}]",
    ast.Set: lambda expr: f"{{{_joined(expr.elts)}}}",
    ast.Dict: lambda expr: f"{{{', '.join([head + flat(part) for head, part in _items(expr)])}}}",
    ast.Subscript: lambda expr: f"{_tight(expr.value)}[{_joined(indices_of(expr))}]",
    ast.BoolOp: lambda expr: f" {SYMBOLS[type(expr.op)]} ".join(_at(x, _NOT) for x in expr.values),
    ast.IfExp: lambda expr: (
        f"{_at(expr.body, _OR)} if {_at(expr.test, _OR)} else {flat(expr.orelse)}"
    ),
    ast.Lambda: lambda expr: f"{_lambda_head(expr)}{flat(expr.body)}",
    ast.Constant: _constant, ast.Call: _call, ast.Tuple: _tuple, ast.Slice: _slice,
    ast.BinOp: _binary, ast.Compare: _compare, ast.UnaryOp: _unary, ast.JoinedStr: _formatted,
    ast.GeneratorExp: _comprehension, ast.ListComp: _comprehension, ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
}  # fmt: skip


def _joined(exprs: Iterable[ast.AST]) -> str:
    return ", ".join([flat(part) for part in exprs])


_Item: TypeAlias = tuple[str, ast.expr]
"""What stands in a bracket: the text before a value, such as `key: ` or `name=`, and the value."""


def _items(expr: ast.AST) -> list[_Item]:
    """Return what stands in the brackets that an expression ends with."""
    match expr:
        case ast.Call(_, args, keywords):
            named = [(f"{each.arg}=" if each.arg else "**", each.value) for each in keywords]
            return [*(("", each) for each in args), *named]
        case ast.Dict(keys, values):
            heads = [f"{flat(key)}: " if key else "**" for key in keys]
            return list(zip(heads, values, strict=True))
        case ast.Subscript():
            return [("", each) for each in indices_of(expr)]
        case ast.Tuple(parts) | ast.List(parts) | ast.Set(parts):
            return [("", each) for each in parts]
        case _:
            return []


def broken(expr: ast.expr, indent: str, before: str, after: str) -> list[str]:
    """Return the lines of `before` + expression + `after`, the first and last at `indent`.

    Return a single line if that fits.
    """
    line = f"{indent}{before}{flat(expr)}{after}"
    if len(line) <= WIDTH or "is_whole" in vars(expr):
        return [line]
    inner = indent + STEP
    match expr:
        case ast.Starred(value):
            return broken(value, indent, f"{before}*", after)
        case ast.Call() | ast.Subscript() if _items(expr):
            opening, closing = _BRACKETS[type(expr)]
            function = expr.func if isinstance(expr, ast.Call) else expr.value
            first = f"{indent}{before}{_tight(function)}{opening}"
            return [first, *_arguments(expr, inner), f"{indent}{closing}{after}"]
        case ast.Attribute(ast.Call() as value, name):
            return broken(value, indent, before, f".{name}{after}")
        case ast.Tuple() | ast.List() | ast.Set() | ast.Dict() if items := _items(expr):
            opening, closing = _BRACKETS[type(expr)]
            head, tail = f"{indent}{before}{opening}", f"{indent}{closing}{after}"
            if len(line) <= WIDEST and _is_filled(items):
                row = Filled(line)
                row.alone = [head, *(f"{inner}{flat(part)}," for _, part in items), tail]
                return [row]
            return [head, *_one_per_line(items, inner), tail]
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            opening, closing = _BRACKETS[type(expr)]
            rows = _clauses(expr, inner)
            return [f"{indent}{before}{opening}", *rows, f"{indent}{closing}{after}"]
        case ast.Lambda(_, body):
            return broken(body, indent, before + _lambda_head(expr), after)
        case ast.BinOp() | ast.Compare(ops=[_]):
            first, *following = _operands(expr, indent)
            *between, last = [f"{indent}{before}{first.removeprefix(indent)}", *following]
            return [*between, f"{last}{after}"]
        case ast.Constant(str()) if len(pieces := _pieces(flat(expr), WIDTH - len(inner))) > 1:
            rows = [f"{inner}{piece}" for piece in pieces]
            return [f"{indent}{before}(", *rows, f"{indent}){after}"]
        case _:
            return [line]


def _pieces(text: str, width: int) -> list[str]:
    """Split a string literal after spaces into adjacent literals."""
    quote = text[:1]
    rows = [""]
    for word in re.split(r"(?<= )", text[1:-1]):
        if rows[-1] and len(rows[-1]) + len(word) + 2 > width:
            rows.append("")
        rows[-1] += word
    return [f"{quote}{row}{quote}" for row in rows]


def _arguments(expr: ast.Call | ast.Subscript, indent: str) -> list[str]:
    items = _items(expr)
    match items:
        case [(_, ast.GeneratorExp() as only)]:
            inside = flat(only)[1:-1]
            fits = len(indent) + len(inside) <= WIDTH
            return [f"{indent}{inside}"] if fits else _clauses(only, indent)
        case _:
            together = indent + ", ".join([before + flat(part) for before, part in items])
            return [together] if len(together) <= WIDTH else _one_per_line(items, indent)


def _clauses(expr: Any, indent: str) -> list[str]:
    """Return the lines of a comprehension without its brackets: the body, then each `for`."""
    if isinstance(expr, ast.DictComp):
        rows = broken(expr.value, indent, f"{flat(expr.key)}: ", "")
    else:
        rows = broken(expr.elt, indent, "", "")
    for each in expr.generators:
        rows += broken(each.iter, indent, f"for {bare(each.target)} in ", "")
    return rows


def _one_per_line(items: Sequence[_Item], indent: str) -> list[str]:
    if _is_filled(items):
        return filled((flat(part) for _, part in items), indent)
    return [line for before, part in items for line in broken(part, indent, before, ",")]


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


def pinned(rows: list[str]) -> list[str]:
    """Return the lines of a statement, with `# fmt: skip` if `ruff format` would change them."""
    if len(rows) == 1 or not any(isinstance(row, Filled) for row in rows):
        return rows
    last = f"{rows[-1]}  # fmt: skip"
    if len(last) <= WIDEST:
        return [*rows[:-1], last]
    return [line for row in rows for line in (row.alone if isinstance(row, Filled) else [row])]


def _is_filled(items: Sequence[_Item]) -> bool:
    """Return whether items share as few lines as possible."""
    inside = [part.value if isinstance(part, ast.Starred) else part for _, part in items]
    return (
        len(inside) >= FEWEST_FILLED
        and not any(before for before, _ in items)
        and all(is_atom(part) and len(flat(part)) <= WIDTH // 2 for part in inside)
    )


def assignment(target: ast.expr, value: ast.expr, indent: str) -> list[str]:
    """Return the lines of `target = value`; a tuple of targets loses its parentheses if it fits."""
    text = bare(target)
    if not isinstance(target, ast.Tuple) or len(f"{indent}{text} = {_head(value)}") <= WIDTH:
        return wrapped(value, indent, f"{text} = ")
    *first, last = broken_always(target, indent)
    return [*first, *wrapped(value, indent, f"{last.removeprefix(indent)} = ")]


def _head(value: ast.expr) -> str:
    """Return the part of a value that must stay on its first line."""
    match value:
        case ast.Call(function) if _items(value):
            return f"{_tight(function)}("
        case ast.Subscript(inside):
            return f"{_tight(inside)}["
        case ast.ListComp() | ast.Tuple([_, *_]) | ast.List([_, *_]) | ast.Dict([_, *_]):
            return _BRACKETS[type(value)][0]
        case _:
            return flat(value)


def broken_always(targets: ast.Tuple, indent: str) -> list[str]:
    """Return a tuple on several lines, even if it fits on one."""
    return [f"{indent}(", *_one_per_line(_items(targets), indent + STEP), f"{indent})"]


def returned(value: ast.expr, indent: str) -> list[str]:
    """Return the lines of `return value`; a tuple loses its parentheses if it fits."""
    if not any(isinstance(part, ast.Starred) for part in getattr(value, "elts", ())):
        line = f"{indent}return {bare(value)}"
        if len(line) <= WIDTH:
            return [line]
    return wrapped(value, indent, "return ")


def wrapped(value: ast.expr, indent: str, before: str) -> list[str]:
    """Return the lines of `before` + value; a value without a bracket to break gets parentheses."""
    line = f"{indent}{before}{flat(value)}"
    if len(line) <= WIDTH:
        return [line]
    inner = indent + STEP
    match value:
        case ast.BinOp(left, operator, (ast.Call() | ast.Subscript()) as last) if _items(
            last
        ) and precedence(left) > (level := _PRECEDENCE[type(operator)]):
            head = f"{before}{_at(left, level)} {SYMBOLS[type(operator)]} "
            if len(f"{indent}{head}{_head(last)}") <= WIDTH:
                return broken(last, indent, head, "")
            in_parentheses = True
        case ast.BinOp() | ast.Compare(ops=[_]) | ast.UnaryOp():
            in_parentheses = True
        case ast.Attribute() if _is_chain(value):
            in_parentheses = len(f"{inner}{flat(value)}") <= WIDTH
        case ast.Call() | ast.Subscript():
            head = _head(value)
            in_parentheses = len(f"{indent}{before}{head}") > WIDTH >= len(f"{inner}{head}")
        case _:
            in_parentheses = False
    if in_parentheses:
        return [f"{indent}{before}(", *broken(value, inner, "", ""), f"{indent})"]
    return broken(value, indent, before, "")


def _is_chain(value: ast.expr) -> bool:
    """Return whether an expression is an attribute of a name or index, without a call to break."""
    while isinstance(value, ast.Attribute | ast.Subscript):
        value = value.value
    return isinstance(value, ast.Name)


def _operands(value: ast.expr, indent: str) -> list[str]:
    """Return a chain of operators, each at the start of a line."""
    level = precedence(value)
    rows: list[str] = []
    while isinstance(value, ast.BinOp | ast.Compare) and precedence(value) == level:
        left, operator, right = (
            (value.left, value.op, value.right)
            if isinstance(value, ast.BinOp)
            else (value.left, value.ops[0], value.comparators[0])
        )
        before = f"{SYMBOLS[type(operator)]} "
        if precedence(right) <= level:
            rows[:0] = [f"{indent}{before}({flat(right)})"]
        else:
            rows[:0] = broken(right, indent, before, "")
        value = left
    return [*broken(value, indent, "", ""), *rows]


def definition(name: str, parameters: Sequence[str], indent: str, after: str = ":") -> list[str]:
    """Return the lines of `def name(parameters):`."""
    line = f"{indent}def {name}({', '.join(parameters)}){after}"
    if len(line) <= WIDTH:
        return [line]
    inner = indent + STEP
    together = inner + ", ".join(parameters)
    if len(together) <= WIDTH and not "*" in parameters[-1:]:
        return [f"{indent}def {name}(", together, f"{indent}){after}"]
    rows = [f"{inner}{parameter}," for parameter in parameters]
    if len(parameters) >= FEWEST_FILLED:
        rows = filled(parameters, inner)
    return [f"{indent}def {name}(", *rows, f"{indent}){after}"]
