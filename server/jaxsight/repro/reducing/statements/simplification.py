"""Simplifies expressions: calls become their arguments, transformations are peeled off."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from jaxsight.repro.reducing.checker import Checker
from jaxsight.repro.reducing.statements.texts import Text, edited, is_constant, is_filled

_WRAPPERS = frozenset(
    (
        "jit",
        "checkpoint",
        "remat",
        "vmap",
        "grad",
        "value_and_grad",
        "partial",
        "pmap",
        "named_call",
    )
)


def simplify(text: Text, checker: Checker[Text]) -> Text:
    """Return a text of which no single expression can be made simpler."""
    passes = (_decorators, _unwrapped, _inlined, _inlined_calls, _shorter, _hoisted, _numbers)
    while True:
        before = text
        for simpler in passes:
            text = _exhausted(text, simpler, checker)
        if text == before:
            return text


def _exhausted(
    text: Text, simpler: Callable[[Text], Iterator[Text | None]], checker: Checker[Text]
) -> Text:
    """Apply a pass; after each success, continue at the same place of the new text."""
    skipped = 0
    while True:
        numbers: dict[str, int] = {}
        smaller = checker.first(_numbered(simpler(text), skipped, numbers))
        if smaller is None:
            return text
        skipped = numbers[smaller.digest]
        text = smaller


def _numbered(
    texts: Iterator[Text | None], skipped: int, numbers: dict[str, int]
) -> Iterator[Text | None]:
    """Yield texts after the first `skipped` ones; store the number of each by its digest."""
    for number, text in enumerate(texts):
        if number >= skipped and text is not None:
            numbers.setdefault(text.digest, number)
            yield text


def _decorators(text: Text) -> Iterator[Text | None]:
    """Remove decorators."""
    for index, node in enumerate(ast.walk(text.tree)):
        for position in range(len(getattr(node, "decorator_list", ()))):
            yield edited(text, _drop, index, "decorator_list", position)


def _unwrapped(text: Text) -> Iterator[Text | None]:
    """Replace `jit(f)` by `f`, and `vmap(f)(x)` by `f(x[0])`."""
    for index, node in enumerate(ast.walk(text.tree)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if _name(node.func) in _WRAPPERS:
            yield edited(text, _replace, index, _first_argument)
        elif isinstance(node.func, ast.Call) and _name(node.func.func) == "vmap":
            yield edited(text, _replace, index, _one_row)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _first_argument(node: ast.expr) -> list[ast.expr]:
    return [node.args[0]] if isinstance(node, ast.Call) else []


def _one_row(node: ast.expr) -> list[ast.expr]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Call):
        return []
    rows = [ast.Subscript(each, ast.Constant(0), ast.Load()) for each in node.args]
    return [ast.Call(node.func.args[0], list(rows), [])]


def _inlined(text: Text) -> Iterator[Text | None]:
    """Write constants where they are read."""
    for index, node in enumerate(ast.walk(text.tree)):
        if not isinstance(node, ast.Assign) or not is_filled(node) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name):
            yield edited(text, _inline, index, target.id)


def _inline(tree: ast.Module, index: int, name: str) -> bool:
    assignment = _node(tree, index)
    assert isinstance(assignment, ast.Assign)
    value = assignment.value

    class Reader(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return value if node.id == name and isinstance(node.ctx, ast.Load) else node

    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and any(each is assignment for each in body):
            position = next(i for i, each in enumerate(body) if each is assignment)
            body[position + 1 :] = [Reader().visit(each) for each in body[position + 1 :]]
            del body[position]
            if not body:
                body.append(ast.Pass())
            return True
    return False


def _inlined_calls(text: Text) -> Iterator[Text | None]:
    """Replace a statement that calls a function of the file by the function's statements."""
    for index, node in enumerate(ast.walk(text.tree)):
        if isinstance(node, (ast.Assign, ast.Expr, ast.Return)) and isinstance(
            node.value, ast.Call
        ):
            yield edited(text, _inline_call, index)


def _inline_call(tree: ast.Module, index: int) -> bool:
    statement = _node(tree, index)
    call = statement.value  # type: ignore[attr-defined]
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    function = next(
        (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name), None
    )
    if function is None or call.keywords or function.decorator_list or name in ("main", "inputs"):
        return False
    parameters = [each.arg for each in function.args.args]
    *body, last = function.body
    returns = sum(isinstance(node, ast.Return) for node in ast.walk(function))
    simple = len(parameters) == len(call.args) and returns == isinstance(last, ast.Return)
    if not simple or any(isinstance(each, ast.Starred) for each in call.args):
        return False
    if isinstance(last, ast.Return):
        statement.value = last.value or ast.Constant(None)  # type: ignore[attr-defined]
        body.append(statement)  # type: ignore[arg-type]
    else:
        body.append(last)
    passed = [
        ast.Assign([ast.Name(parameter, ast.Store())], argument)
        for parameter, argument in zip(parameters, call.args, strict=True)
    ]
    for around in ast.walk(tree):
        nodes = getattr(around, "body", None)
        if isinstance(nodes, list) and any(each is statement for each in nodes):
            position = next(i for i, each in enumerate(nodes) if each is statement)
            nodes[position : position + 1] = [*passed, *body]
            break
    tree.body.remove(function)
    return True


def _shorter(text: Text) -> Iterator[Text | None]:
    """Remove one element of a tuple or list, or one argument of a call."""
    for index, node in enumerate(ast.walk(text.tree)):
        for field in ("elts", "args", "keywords"):
            elements = getattr(node, field, ())
            for position in range(len(elements) if isinstance(elements, list) else 0):
                yield edited(text, _drop, index, field, position)


def _drop(tree: ast.Module, index: int, field: str, position: int) -> bool:
    """Remove an element of a list of a node."""
    del getattr(_node(tree, index), field)[position]
    return True


def _hoisted(text: Text) -> Iterator[Text | None]:
    """Replace an expression by one of its parts, a returned or assigned value by none."""
    for index, node in enumerate(ast.walk(text.tree)):
        if isinstance(node, (ast.Return, ast.Assign)) and node.value is not None:
            yield edited(text, _only_value, index)
        if not isinstance(node, ast.expr) or is_constant(node):
            continue
        for position in range(len(_parts(node))):
            yield edited(text, _replace, index, _parts, position)


def _only_value(tree: ast.Module, index: int) -> bool:
    node = _node(tree, index)
    assert isinstance(node, (ast.Return, ast.Assign))
    for around in ast.walk(tree):
        body = getattr(around, "body", None)
        if isinstance(body, list) and any(each is node for each in body) and node.value:
            body[next(i for i, each in enumerate(body) if each is node)] = ast.Expr(node.value)
            return True
    return False


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the parts of an expression that may take its place."""
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Call():
            parts = [each for each in node.args if not isinstance(each, ast.Starred)]
            if isinstance(node.func, ast.Attribute) and not is_constant(node.func):
                parts.append(node.func.value)
            return parts
        case ast.Subscript():
            return [node.value]
        case ast.Attribute() if not isinstance(node.value, ast.Name):
            return [node.value]
        case ast.Tuple() | ast.List():
            return list(node.elts)
        case ast.IfExp():
            return [node.body, node.orelse]
    return []


def _numbers(text: Text) -> Iterator[Text | None]:
    """Make whole numbers smaller, wherever they occur."""
    numbers = {
        node.value
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 3
    }
    for number in sorted(numbers, reverse=True):
        for smaller in (1, 2, 3, number // 2):
            if smaller < number:
                yield _renumbered(text, number, smaller)


def _renumbered(text: Text, number: int, smaller: int) -> Text | None:
    tree = text.tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value == number:
            node.value = smaller
    body = ast.unparse(tree)
    return Text(text.header, body) if len(body) <= len(text.body) and body != text.body else None


def _node(tree: ast.AST, index: int) -> ast.AST:
    """Return the node that `ast.walk` yields at a position."""
    return next(node for position, node in enumerate(ast.walk(tree)) if position == index)


def _replace(
    tree: ast.AST, index: int, options: Callable[[ast.expr], list[ast.expr]], position: int = 0
) -> bool:
    """Replace an expression by one of those that a function returns for it."""
    node = _node(tree, index)
    replacement = options(node)[position:]  # type: ignore[arg-type]
    if not replacement:
        return False
    for around in ast.walk(tree):
        for name, value in ast.iter_fields(around):
            if value is node:
                setattr(around, name, replacement[0])
                return True
            if isinstance(value, list) and any(each is node for each in value):
                value[next(i for i, each in enumerate(value) if each is node)] = replacement[0]
                return True
    return False
