"""Statements as `ast` nodes: what builds them, and their text as `ruff format` lays it out.

Knows nothing of JAX. Nodes have attributes beside Python's where a builder here sets them: the
`equations` of the value, for links to the source, a `comment`, `remarks` above the statement,
whether a target is `user_named`, and whether a function `runs` where it is defined.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jaxsight_source.text import exprs, layout
from jaxsight_source.text.layout import STEP, WIDTH, bare, broken, flat, pinned, returned


class Raw(ast.stmt):
    """Verbatim lines, relative to the indentation around them."""

    def __init__(self, lines: list[str], modules: frozenset[str] = frozenset()) -> None:
        """Hold lines, and the modules to import for the names in them."""
        super().__init__()
        self.lines = lines
        self.modules = modules


def assign(
    target: str | ast.expr,
    value: ast.expr,
    equations: Sequence[Any] = (),
    comment: str = "",
    *,
    user_named: bool = False,
) -> ast.Assign:
    """Return `target = value`, of these equations; `user_named` if the user named the target."""
    node = ast.Assign([exprs.public(target) if isinstance(target, str) else target], value)
    return exprs.changed(node, equations=equations, comment=comment, user_named=user_named)


def effect(value: ast.expr, equations: Sequence[Any] = ()) -> ast.Expr:
    """Return an expression statement, for its effect."""
    return exprs.changed(ast.Expr(value), equations=equations)


def return_(value: ast.expr, equations: Sequence[Any] = ()) -> ast.Return:
    """Return `return value`; `equations` are those of expressions that were inlined into it."""
    return exprs.changed(ast.Return(value), equations=equations)


def define(
    name: str,
    named: Sequence[str],
    body: list[ast.stmt],
    decorators: Sequence[ast.expr] = (),
    docstring: str = "",
    *,
    runs: bool = False,
) -> ast.FunctionDef:
    """Return a function with these parameters; `runs` if a decorator calls it at once."""
    documented = [ast.Expr(ast.Constant(docstring)), *body] if docstring else body
    node = ast.FunctionDef(name, exprs.arguments(named), documented, [*decorators])
    return exprs.changed(node, runs=runs)


def equations_of(statement: ast.stmt) -> Sequence[Any]:
    """Return the equations of a statement's value."""
    equations: Sequence[Any] = getattr(statement, "equations", ())
    return equations


class Line(NamedTuple):
    """A line of text, and its equations."""

    text: str
    equations: Sequence[Any] = ()


def formatted(text: str) -> str:
    """Return a module as `ruff format` prints it, with a line length of 88.

    Comments, empty lines between statements and redundant brackets are lost.
    """
    return "".join(f"{line.text}\n" for line in lines(exprs.parse(text)))


def lines(body: Sequence[ast.stmt], indent: str = "", before: ast.stmt | None = None) -> list[Line]:
    """Return the statements as formatted lines, to follow the statement `before`."""
    text_lines: list[Line] = []
    for statement in body:
        is_function = isinstance(statement, ast.FunctionDef) and before is not None
        if is_function or isinstance(before, ast.FunctionDef):
            text_lines += [Line("")] * (1 if indent else 2)
        remarks = getattr(statement, "remarks", "")
        text_lines += [Line(f"{indent}# {_visible(row)}".rstrip()) for row in remarks.splitlines()]
        text_lines += _laid_out(statement, indent)
        before = statement
    return text_lines


def height(body: Sequence[ast.stmt], indent: str) -> int:
    """Return the number of lines of statements."""
    return len(lines(body, indent))


def _laid_out(statement: ast.stmt, indent: str) -> list[Line]:
    match statement:
        case ast.Assign([target], value):
            rows = pinned(_assigned(target, value, indent))
            above = []
            if comment := _visible(getattr(statement, "comment", "")):
                if len(rows) == 1 and len(rows[0]) + len(comment) + 4 <= WIDTH:
                    rows[0] += f"  # {comment}"
                else:
                    above = [Line(f"{indent}# {comment}")]
            return [*above, *(Line(row, equations_of(statement)) for row in rows)]
        case ast.Expr(ast.Constant(str(text))):
            text = inspect.cleandoc(text)
            end = "\n" if "\n" in text else ""
            return [Line(f"{indent}{row}".rstrip()) for row in f'"""{text}{end}"""'.splitlines()]
        case ast.Expr(value):
            rows = pinned(broken(value, indent, "", ""))
            return [Line(row, equations_of(statement)) for row in rows]
        case ast.Return(ast.expr() as value):
            return [Line(row, equations_of(statement)) for row in pinned(returned(value, indent))]
        case ast.Raise(ast.expr() as value, None):
            return [*map(Line, pinned(broken(value, indent, "raise ", "")))]
        case Raw():
            return [Line(f"{indent}{row}".rstrip()) for row in statement.lines]
        case ast.With([ast.withitem(context, target)], body):
            end = f" as {flat(target)}:" if target else ":"
            head = pinned(broken(context, indent, "with ", end))
            return [*map(Line, head), *_block(body, indent)]
        case ast.For(target, values, body, []):
            return [*map(Line, pinned(_heading(target, values, indent))), *_block(body, indent)]
        case ast.FunctionDef():
            return _function(statement, indent)
        case ast.If(test, body, others):
            chosen = [Line(f"{indent}if {flat(test)}:"), *_block(body, indent)]
            match others:
                case []:
                    return chosen
                case [ast.If() as other]:
                    first, *following = _laid_out(other, indent)
                    return [*chosen, Line(f"{indent}el{first.text.lstrip()}"), *following]
                case _:
                    return [*chosen, Line(f"{indent}else:"), *_block(others, indent)]
        case ast.ClassDef(body=body) | ast.While(body=body, orelse=[]):
            *heads, _ = ast.unparse(exprs.changed(statement, body=[ast.Pass()])).splitlines()
            inside = _block(body, indent)
            is_documented = isinstance(statement, ast.ClassDef) and ast.get_docstring(statement)
            if is_documented and len(body) > 1 and not isinstance(body[1], ast.FunctionDef):
                inside.insert(len(lines(body[:1])), Line(""))
            return [*(Line(indent + head) for head in heads), *inside]
        case _:
            return [Line(indent + row) for row in ast.unparse(statement).splitlines()]


def _assigned(target: ast.expr, value: ast.expr, indent: str) -> list[str]:
    match value:
        case ast.Tuple([ast.expr(col_offset=first), *_], col_offset=own) if first == own:
            text = f"{bare(target)} = {bare(value)}"
            if len(text) < _LONGEST_BARE:
                return [indent + text]
        case _:
            pass
    if isinstance(target, ast.Subscript):
        return broken(value, indent, f"{flat(target)} = ", "")
    return layout.assignment(target, value, indent)


_LONGEST_BARE = WIDTH - 16
"""The maximum length of an assigned tuple without brackets, which leaves room to indent it."""


def _block(body: Sequence[ast.stmt], indent: str) -> list[Line]:
    gap = [Line("")] if isinstance(body[0], ast.FunctionDef) else []
    return [*gap, *lines(body, indent + STEP)]


def _heading(target: ast.expr, values: ast.expr, indent: str) -> list[str]:
    """Return the lines of `for target in values:`."""
    if isinstance(target, ast.Name) or len(f"{indent}for {bare(target)} in zip(") <= WIDTH:
        return broken(values, indent, f"for {bare(target)} in ", ":")
    assert isinstance(target, ast.Tuple)
    _, *rows, last = layout.broken_always(target, indent)
    return [f"{indent}for (", *rows, *broken(values, indent, f"{last.strip()} in ", ":")]


def _function(function: ast.FunctionDef, indent: str) -> list[Line]:
    head: list[str] = []
    for decorator in function.decorator_list:
        head += pinned(broken(decorator, indent, "@", ""))
    end = f" -> {flat(function.returns)}:" if function.returns else ":"
    head += pinned(layout.definition(function.name, layout.parameters(function.args), indent, end))
    return [*map(Line, head), *lines(function.body, indent + STEP)]


def _visible(quoted: str) -> str:
    """Return the user's text for a comment, with invisible and reordering characters escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in quoted)


def roots(text: str) -> set[str]:
    """Return the first names of the expressions in a module's text, to find its imports."""
    return set(re.findall(r"(?<![\w.\"'])([A-Za-z_]\w*)", text))


UNREAD = "_"


def contents(statement: ast.stmt) -> tuple[Sequence[ast.expr], list[ast.stmt]]:
    """Return the expressions that a statement reads, and the statements inside it."""
    match statement:
        case ast.Assign(targets, value):
            return [value, *(part for part in targets if isinstance(part, ast.Subscript))], []
        case ast.Expr(value) | ast.Return(ast.expr() as value) | ast.Raise(ast.expr() as value):
            return [value], []
        case ast.With([ast.withitem(context)], body):
            return [context], body
        case ast.For(_, values, body):
            return [values], body
        case ast.FunctionDef(_, parameters, body, decorators):
            return [*decorators, *parameters.defaults, *filter(None, parameters.kw_defaults)], body
        case ast.If(test, body, others):
            return [test], [*body, *others]
        case _:
            return [], []


def own_statements(body: Iterable[ast.stmt], *, inner: bool = False) -> Iterator[ast.stmt]:
    """Yield the statements of a function, those of `inner` functions only on request."""
    for statement in body:
        yield statement
        if inner or not isinstance(statement, ast.FunctionDef):
            yield from own_statements(contents(statement)[1], inner=inner)


def expressions(body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    """Yield all expressions, also those of inner functions."""
    for statement in own_statements(body, inner=True):
        yield from contents(statement)[0]


def value_name(expr: object) -> str:
    """Return the name that an item is, or an empty string."""
    return expr.id if isinstance(expr, ast.Name) and expr.id != UNREAD else ""


def names_read(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield every name that is read, once per reading."""
    for statement in own_statements(body, inner=True):
        names = _words(statement) if isinstance(statement, Raw) else []
        for expr in contents(statement)[0]:
            _gather(expr, names)
        yield from names


def _words(raw: Raw) -> list[str]:
    return re.findall(r"(?<![\w.])[A-Za-z_]\w*", "\n".join(raw.lines))


def _gather(expr: Any, names: list[str]) -> None:
    """Append the names that an expression reads, once per reading."""
    match expr:
        case ast.Name(name):
            names.append(name)
        case ast.Constant():
            pass
        case ast.comprehension(_, values):
            _gather(values, names)
        case _:
            for part in exprs.children(expr):
                _gather(part, names)
                if isinstance(expr, _LATER) and not isinstance(part, ast.comprehension):
                    _gather(part, names)  # twice: values evaluated later must not be inlined


_LATER = (ast.IfExp, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)
"""Expressions whose parts are evaluated later, or repeatedly."""


def modules_read(body: Iterable[ast.stmt]) -> set[str]:
    """Return the modules to import for the names that statements read."""
    raw = (part for part in own_statements(body, inner=True) if isinstance(part, Raw))
    return set().union(*(part.modules for part in raw), *map(exprs.modules_in, body))


def names_assigned(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield every name that is assigned, once per assignment."""
    for statement in own_statements(body, inner=True):
        match statement:
            case ast.Assign([target]) | ast.For(target):
                yield from _targets(target)
            case ast.FunctionDef(name, parameters):
                yield name
                yield from (node.arg for node in ast.walk(parameters) if isinstance(node, ast.arg))
            case ast.With([ast.withitem(_, ast.Name(name))]):
                yield name
            case Raw():
                yield from _words(statement)
            case _:
                pass


def _targets(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(name):
            yield name
        case ast.Starred(inside):
            yield from _targets(inside)
        case ast.Tuple(parts):
            for part in parts:
                yield from _targets(part)
        case _:
            pass


def rewritten(
    body: Iterable[ast.stmt],
    expression: Callable[[Any], Any] = lambda expr: expr,
    replaced: Mapping[int, ast.stmt | None] | None = None,
) -> list[ast.stmt]:
    """Return statements with other expressions.

    Args:
        expression: returns what takes the place of an expression.
        replaced: what takes the place of whole statements, by their ids; None removes one.
    """
    replaced = replaced or {}

    def change(part: Any) -> Any:
        if isinstance(part, ast.stmt):
            return part  # rewritten already
        return expression(part) if isinstance(part, ast.expr) else exprs.mapped(part, change)

    statements: list[ast.stmt] = []
    for old in body:
        statement = replaced.get(id(old), old)
        if isinstance(statement, ast.With | ast.For | ast.FunctionDef):
            inside = rewritten(statement.body, expression, replaced)
            statement = exprs.changed(statement, body=inside)
        if statement is not None:
            statements.append(exprs.mapped(statement, change))
    return statements


def renamed(body: Iterable[ast.stmt], old: str, new: str) -> list[ast.stmt]:
    """Return the statements with `old` replaced in all names.

    It is also replaced at the start of a name (`old_jvp`).
    """

    def change(part: Any) -> Any:
        part = exprs.mapped(part, change)
        for field in ("id", "name"):
            name = vars(part).get(field)
            if name is not None and name.startswith(old):
                return exprs.changed(part, **{field: new + name[len(old) :]})
        return part

    return list(map(change, body))
