"""Find patterns in the text of a module, and write templates with the names of the module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from jaxsight.rules.fixing.context import FixContext
from jaxsight.rules.patterns.written import (
    expanded,
    hole_of,
    in_any_order,
    in_order,
    number_of,
    operands_of,
    pattern,
)
from jaxsight.rules.text.expressions import same

FUNCTIONS: Mapping[str, str] = {
    "dot": r"jax\.numpy\.dot",
    "diag": r"jax\.numpy\.diag(flat)?",
    "eye": r"jax\.numpy\.(eye|identity)",
    "inv": r"jax\.(numpy|scipy)\.linalg\.inv",
    "select": r"jax\.lax\.select",
    **{name: rf"jax\.numpy\.fft\.{name}" for name in ("fftfreq", "rfftfreq")},
    "det": r"jax\.numpy\.linalg\.det",
    "erf": r"jax\.(scipy\.special|lax)\.erf",
    "sigmoid": r"jax\.(nn\.sigmoid|scipy\.special\.expit|lax\.logistic)",
    "softmax": r"jax\.nn\.softmax",
    **{name: rf"jax\.scipy\.stats\.\w+\.{name}" for name in ("cdf", "pdf", "pmf", "sf")},
}
"""By name that a pattern calls the functions, where they are not of `jax.numpy` and `jax.lax`."""
_REDUCTIONS = frozenset({"sum", "mean", "trace", "diagonal"})
"""Those that methods compute too."""
_AXES = frozenset({"axis", "keepdims"})

Found = Mapping[str, ast.expr | str]
"""By hole the expression that it stands for. `axes` has the arguments of reductions as text, and
the name of each other function the text before that name: `jnp.`, `jax.scipy.special.`.
"""


class SyntaxPatterns:
    """Patterns in the text of a module."""

    def __init__(
        self,
        context: FixContext,
        capital: str = "_",
        looks_up: bool = False,
        methods: bool = False,
    ) -> None:
        """Look for patterns.

        Args:
            context: the text.
            capital: the pattern of what a capital letter stands for, in which `_` is its hole.
            looks_up: whether a name that is assigned once also stands for what it is assigned.
            methods: whether `a.dot(b)` is a product too: it may be that of another class.
        """
        self._context = context
        self._capital = capital
        self._looks_up = looks_up
        self._methods = methods

    def at(self, node: ast.expr, text: str) -> Found | None:
        """Return what the holes of a pattern, or of one of several, stand for in an expression."""
        parts = map(pattern, text.split(" | "))
        return next((found for part in parts for found in self._match(part, node, {})), None)

    def filled(self, template: str, found: Found) -> str:
        """Return a template with the names of the module and the texts of an occurrence.

        `{x}` is an expression, `{-x}` its negative, `{x^T}` its transpose, and `{(x)}` is an
        operand.
        """
        context, texts = self._context, {"axes": ""}
        for name, node in found.items():
            if isinstance(node, str):
                texts[name] = node
                continue
            texts[name], texts[f"({name})"] = context.text(node), context.operand(node)
            texts[f"{name}^T"] = self._turned(node)
            match node:
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    texts[f"-{name}"] = context.text(operand)
                case _:
                    texts[f"-{name}"] = f"-{context.operand(node)}"
        return context.spelled(template).format_map(texts)

    def rank(self, node: ast.expr | str) -> int:
        """Return how many axes the array has that a hole stands for, 0 if that is not known."""
        aval = self._context.aval_of(node) if isinstance(node, ast.expr) else None
        return len(aval.shape) if aval is not None else 0

    def _turned(self, node: ast.expr) -> str:
        """Return the text of an array with its last two axes swapped."""
        turn = "T" if self.rank(node) == 2 else "mT"
        if isinstance(node, ast.Attribute) and node.attr == turn:
            return self._context.text(node.value)
        return f"{self._context.operand(node)}.{turn}"

    def _product(self, parts: Sequence[ast.expr], node: ast.expr, found: Found) -> Iterator[Found]:
        """Yield the ways in which an expression is a product of matrices."""
        match node:
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                yield from in_order(parts, [left, right], found, self._match)
            case ast.Call(
                func=ast.Attribute(value=left, attr="dot"), args=[right], keywords=[]
            ) if self._methods:
                yield from in_order(parts, [left, right], found, self._match)
            case ast.Call():
                for name in ("dot", "matmul"):
                    yield from self._call(name, parts, node, found)

    def _match(self, part: ast.expr, node: ast.expr, found: Found) -> Iterator[Found]:
        if (value := number_of(part)) is not None:
            if number_of(node) == value:
                yield found
            return
        if self._looks_up and not hole_of(part):
            node = self._context.value_of(node)
        match part, node:
            case ast.Name(id=hole), _ if hole.isupper():
                yield from self._match(expanded(self._capital, pattern(hole.lower())), node, found)
            case ast.Name(id=hole), _:
                bound = found.get(hole)
                if bound is None or (isinstance(bound, ast.expr) and same(bound, node)):
                    yield {**found, hole: node}
            case ast.Call(func=ast.Name(id=name), args=args), ast.Call():
                yield from self._call(name, args, node, found)
            case (
                ast.BinOp(left=base, op=ast.Pow()),
                ast.BinOp(left=root, op=ast.Pow(), right=ast.Constant(value=2)),
            ):
                yield from self._match(base, root, found)
            case ast.BinOp(left=base, op=ast.Pow()), _:
                for text in ("_ * _", "square(_)"):
                    yield from self._match(expanded(text, base), node, found)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right), _:
                yield from self._product([left, right], node, found)
            case ast.BinOp(op=op), ast.BinOp(left=left, op=operator, right=right):
                if type(op) is not type(operator):
                    return
                parts, whole = [part.left, part.right], [left, right]
                if isinstance(op, ast.Add | ast.Mult):
                    parts = operands_of(part, type(op))
                    yield from in_any_order(parts, whole, found, self._match)
                else:
                    yield from in_order(parts, whole, found, self._match)
            case ast.UnaryOp(operand=inner), ast.UnaryOp(op=ast.USub(), operand=operand):
                yield from self._match(inner, operand, found)
            case ast.Attribute(value=inner, attr="T"), ast.Attribute(value=array, attr="T" | "mT"):
                yield from self._match(inner, array, found)

    def _call(
        self, name: str, parts: Sequence[ast.expr], node: ast.Call, found: Found
    ) -> Iterator[Found]:
        """Yield the ways in which a call is one of a function of a name."""
        context = self._context
        function = context.called(node.func)
        if name in _REDUCTIONS:
            reduced = self._reduced(node, name)
            if reduced is not None and found.get("axes", reduced[1]) == reduced[1]:
                yield from self._match(parts[0], reduced[0], {**found, "axes": reduced[1]})
            return
        if not re.fullmatch(FUNCTIONS.get(name, rf"jax\.(numpy|lax)\.{name}"), function):
            return
        before = f"{function.rpartition('.')[0]}."
        if isinstance(node.func, ast.Attribute):
            before = f"{context.text(node.func.value)}."
        named: Found = {**found, name: before}
        if isinstance(parts[0], ast.Starred):
            yield {**named, hole_of(parts[0]): self._arguments(node)}
        elif not node.keywords:
            yield from in_order(parts, node.args, named, self._match)

    def _arguments(self, call: ast.Call) -> str:
        text = self._context.text
        named = [f"{key.arg}={text(key.value)}" for key in call.keywords if key.arg]
        return ", ".join([*map(text, call.args), *named])

    def _reduced(self, call: ast.Call, name: str) -> tuple[ast.expr, str] | None:
        """Return what a function or method reduces, and its other arguments as text."""
        read = self._context.array_call(call)
        if read is None or read[0] != name:
            return None
        _, operand, others = read
        if any(key.arg not in _AXES for key in call.keywords) or len(others) > 1:
            return None
        text = self._context.text
        axes = [f"axis={text(argument)}" for argument in others]
        axes += [f"{key.arg}={text(key.value)}" for key in call.keywords]
        return operand, "".join(f", {axis}" for axis in axes)
