"""Python's syntax trees as the statements and expressions of this package, to lay them out.

For text that is not made of `exprs` in the first place. Those are not `ast` nodes, because the
prover compares, hashes and prints thousands of candidates: `flat` takes 7 µs where `ast.unparse`
takes 58, and equality 26 µs where a comparison of `ast.dump`s takes 217 (measured for
`jnp.sum(x * params["w"], axis=1, dtype=jnp.float32)` with Python 3.12).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from jaxsight_source.text.exprs import (
    Atom,
    Attribute,
    Binary,
    Call,
    Each,
    Expr,
    Index,
    Keyword,
    Lambda,
    Pair,
    Sequence_,
    Star,
    Unary,
    quoted,
)
from jaxsight_source.text.layout import STEP, WIDTH, flat
from jaxsight_source.text.statements import (
    Assign,
    Effect,
    For,
    Function,
    Raw,
    Return,
    Statement,
    With,
    lines,
)

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.MatMult: "@", ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


_LONGEST_BARE = WIDTH - 16
"""The maximum length of an assigned tuple without brackets, which leaves room to indent it."""


def formatted(text: str) -> str:
    """Return a module as `ruff format` prints it, with a line length of 88.

    Comments, empty lines between statements and redundant brackets are lost.
    """
    module, rows = ast.parse(text), text.encode().split(b"\n")
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | complex):
            row = rows[node.lineno - 1]
            node.kind = row[node.col_offset : node.end_col_offset].decode()  # `1e-3`, not `0.001`
    return "".join(f"{line.text}\n" for line in lines(statements(module.body)))


def statements(body: Sequence[ast.stmt]) -> list[Statement]:
    """Return statements of Python's syntax tree; `Raw` ones where this package has no class."""
    return [_statement(node) for node in body]


def _statement(node: ast.stmt) -> Statement:
    match node:
        case ast.Assign([target], ast.Tuple([first, *_]) as value) if (
            value.col_offset == first.col_offset and len(ast.unparse(node)) < _LONGEST_BARE
        ):
            return Assign(_target(target), Atom(flat(expression(value))[1:-1]))
        case ast.Assign([target], value):
            return Assign(_target(target), expression(value))
        case ast.Expr(ast.Constant(str(text))):
            return Raw(f'"""{text}"""'.splitlines())
        case ast.Expr(value):
            return Effect(expression(value))
        case ast.Return(ast.expr() as value):
            return Return(expression(value))
        case ast.With([ast.withitem(context, None)], body):
            return With(expression(context), statements(body))
        case ast.For(target, values, body, []):
            return For(_target(target), expression(values), statements(body))
        case ast.FunctionDef(name, parameters, body, decorators, None):
            docstring = ast.get_docstring(node) or ""
            return Function(
                name,
                _parameters(parameters),
                statements(body[1:] if docstring else body),
                [expression(decorator) for decorator in decorators],
                docstring,
            )
        case ast.If(test, body, others):
            rows = _block(f"if {flat(expression(test))}:", body)
            match others:
                case []:
                    return Raw(rows)
                case [ast.If() as other] if isinstance(inner := _statement(other), Raw):
                    return Raw([*rows, f"el{inner.lines[0]}", *inner.lines[1:]])
                case _:
                    return Raw([*rows, *_block("else:", others)])
        case ast.ClassDef(body=body) | ast.While(body=body, orelse=[]):
            empty = type(node)(**vars(node) | {"body": [ast.Pass()]})
            *head, _ = ast.unparse(empty).splitlines()
            head, rows = head[:-1], _block(head[-1], body)
            quote = ast.get_docstring(node, clean=False) if isinstance(node, ast.ClassDef) else None
            if quote and len(body) > 1:
                rows.insert(1 + len(quote.splitlines()), "")
            return Raw([*head, *rows])
        case _:
            return Raw(ast.unparse(node).splitlines())


def _block(head: str, body: Sequence[ast.stmt]) -> list[str]:
    gap = [""] if isinstance(body[0], ast.FunctionDef) else []
    return [head, *gap, *(line.text for line in lines(statements(body), STEP))]


def _parameters(parameters: ast.arguments) -> tuple[str, ...]:
    """Return each parameter with its default, as the text of a `lambda` without a body has them."""
    positional = [ast.Name(flat(expression(part))) for part in parameters.defaults]
    named = [part and ast.Name(flat(expression(part))) for part in parameters.kw_defaults]
    spelled = ast.arguments(**vars(parameters) | {"defaults": positional, "kw_defaults": named})
    text = ast.unparse(ast.Lambda(spelled, ast.Constant(0)))
    text = text.removeprefix("lambda").removesuffix(": 0").strip()
    is_plain = not any(mark in text for mark in "([{'\"")
    return tuple(text.split(", ")) if text and is_plain else (text,) if text else ()


def _target(node: ast.expr) -> str | Sequence_:
    match expression(node):
        case Sequence_() as targets:
            return targets
        case _:
            return ast.unparse(node)


def expression(node: ast.expr) -> Expr:
    """Return an expression of Python's syntax tree that can be laid out."""
    match node:
        case ast.Constant(str(text)):
            return Atom(quoted(text))
        case ast.Constant(kind=str(spelled)):
            return Atom(spelled)
        case ast.Call(function, args, named) if all(part.arg for part in named):
            keywords = (Keyword(str(part.arg), expression(part.value)) for part in named)
            return Call(_operand(function), (*map(expression, args), *keywords))
        case ast.Attribute(inside, name):
            expr = _operand(inside)
            if isinstance(expr, Atom) and expr.text.replace(".", "").isidentifier():
                return Atom(f"{expr.text}.{name}")
            return Attribute(expr, name)
        case ast.Subscript(inside, ast.Tuple(elts=[_, _, *_] as indices)):
            return Index(_operand(inside), tuple(map(expression, indices)))
        case ast.Subscript(inside, index):
            return Index(_operand(inside), (expression(index),))
        case ast.Lambda(parameters, body):
            return Lambda(_parameters(parameters), expression(body))
        case ast.Slice():
            return Atom(_slice(node))
        case ast.Starred(value):
            return Star(expression(value))
        case ast.Tuple(elts=parts):
            return Sequence_("(", tuple(map(expression, parts)))
        case ast.List(elts=parts):
            return Sequence_("[", tuple(map(expression, parts)))
        case ast.Dict(keys, values) if all(keys):
            pairs = zip(keys, values, strict=True)
            return Sequence_("{", tuple(Pair(expression(k), expression(v)) for k, v in pairs if k))
        case ast.ListComp(body, [ast.comprehension(target, values, [], 0)]):
            each = Each(expression(body), ast.unparse(target).strip("()"), expression(values))
            return Sequence_("[", (each,))
        case ast.BinOp(left, operator, right):
            return Binary(_OPERATORS[type(operator)], _operand(left), _operand(right))
        case ast.Compare(left, [operator], [right]) if type(operator) in _OPERATORS:
            return Binary(_OPERATORS[type(operator)], _operand(left), _operand(right))
        case ast.UnaryOp(operator, value) if type(operator) in _OPERATORS:
            return Unary(_OPERATORS[type(operator)], _operand(value))
        case ast.UnaryOp(ast.Not(), value):
            return Atom(f"not {flat(_operand(value))}")
        case ast.BoolOp(operator, parts):
            word = " and " if isinstance(operator, ast.And) else " or "
            return Atom(word.join(flat(_operand(part)) for part in parts))
        case _:
            return Atom(ast.unparse(node))


def _slice(node: ast.Slice) -> str:
    """Return a slice, with spaces around its colons if a part is no name or number."""
    parts = [node.lower, node.upper, *([node.step] if node.step else [])]
    shown = [flat(expression(part)) if part else "" for part in parts]
    if all(re.fullmatch(r"-?[\w.]*", part) for part in shown):
        return ":".join(shown)
    return re.sub(r" +", " ", " : ".join(shown)).strip()


def _operand(node: ast.expr) -> Expr:
    expr = expression(node)
    match node:
        case ast.UnaryOp(ast.Not(), ast.Call() | ast.Name()):
            return expr
        case ast.UnaryOp(ast.Not()) | ast.IfExp() | ast.BoolOp() | ast.NamedExpr():
            return Atom(f"({flat(expr)})")
        case ast.Compare() if isinstance(expr, Atom):
            return Atom(f"({expr.text})")
        case _:
            return expr
