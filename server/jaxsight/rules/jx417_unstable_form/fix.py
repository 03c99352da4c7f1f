"""JX417: write the stable function in place of one clear expression."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.fixing.syntax import same
from jaxsight.rules.wording import quoted

_AXES = frozenset({"axis", "keepdims"})
_LOG_OF_CALL = {
    "jax.nn.softmax": "log_softmax", "jax.nn.sigmoid": "log_sigmoid",
    "jax.scipy.special.expit": "log_sigmoid",
}  # fmt: skip
_DENSITIES = {"cdf": "logcdf", "sf": "logsf", "pdf": "logpdf", "pmf": "logpmf"}


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the stable form of the expression that the finding is about."""
    for node in context.nodes:
        if isinstance(node, ast.expr) and context.range(node) == context.finding.range:
            text = _stable(_Words(context), node)
            if text:
                imported = context.jax_import() if text.startswith(("jax.", "-jax.")) else ()
                edits = (context.replace(node, text), *imported)
                # Where these are NaN or round, the stable function is right and so differs.
                differs = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
                differs |= text.endswith("[1]")
                yield Candidate(f"Write {quoted(text)}", edits, same=not differs)
            return


@dataclass(frozen=True, slots=True)
class _Words:
    """Read and write expressions of a module."""

    context: FixContext

    def calls(self, node: ast.expr, *names: str) -> ast.Call | None:
        """Return a node that calls one of some functions of `jax.numpy`, `jax.lax` or elsewhere."""
        if not isinstance(node, ast.Call) or not node.args:
            return None
        called = self.context.called(node.func)
        full = [full_name for name in names for full_name in _full(name)]
        return node if called in full else None

    def argument(self, node: ast.expr, *names: str) -> ast.expr | None:
        """Return the only argument of a call of one of some functions."""
        call = self.calls(node, *names)
        return call.args[0] if call and len(call.args) == 1 and not call.keywords else None

    def reduced(self, node: ast.expr, name: str) -> tuple[ast.expr, str] | None:
        """Return what a call of a reduction or the method reduces, and its other arguments."""
        if not isinstance(node, ast.Call):
            return None
        if any(key.arg not in _AXES for key in node.keywords) or len(node.args) > 2:
            return None
        if self.calls(node, name):
            operand, arguments = node.args[0], node.args[1:]
        elif isinstance(node.func, ast.Attribute) and node.func.attr == name and len(node.args) < 2:
            if self.context.called(node.func.value) in ("jax.numpy", "numpy"):
                return None
            operand, arguments = node.func.value, node.args
        else:
            return None
        texts = [f"axis={self.text(argument)}" for argument in arguments]
        texts += [f"{key.arg}={self.text(key.value)}" for key in node.keywords]
        return operand, "".join(f", {text}" for text in texts)

    def text(self, node: ast.expr) -> str:
        return self.context.text(node)

    def negated(self, node: ast.expr) -> str:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.text(node.operand)
        return f"-{self.context.operand(node)}"

    def nn(self, name: str) -> str:
        module = self.context.imports.get("jax.nn", f"{self.context.imports.get('jax', 'jax')}.nn")
        return f"{module}.{name}"

    def jnp(self, name: str) -> str:
        return f"{self.context.jnp or 'jax.numpy'}.{name}"


def _full(name: str) -> tuple[str, ...]:
    return (name,) if "." in name else (f"jax.numpy.{name}", f"jax.lax.{name}")


def _stable(words: _Words, node: ast.expr) -> str:
    """Return the text of the stable form, or an empty text."""
    operand = words.argument(node, "log")
    if operand is not None:
        return _of_log(words, operand)
    operand = words.argument(node, "log1p")
    if operand is not None:
        x = words.argument(operand, "exp")
        if x is not None:
            return f"{words.nn('softplus')}({words.text(x)})"
        return _log_of_complement(words, operand)
    match node:
        case ast.BinOp(op=ast.Sub()):
            return _of_difference(words, node)
        case ast.BinOp(op=ast.Div()):
            return _of_quotient(words, node)
        case _:
            return ""


def _log_of_complement(words: _Words, operand: ast.expr) -> str:
    """Return the stable form of `log1p(-sigmoid(x))`."""
    match operand:
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            x = words.argument(inner, *_SIGMOIDS)
            return f"{words.nn('log_sigmoid')}({words.negated(x)})" if x is not None else ""
        case _:
            return ""


_SIGMOIDS = ("jax.nn.sigmoid", "jax.scipy.special.expit", "jax.lax.logistic")


def _of_log(words: _Words, operand: ast.expr) -> str:
    call = words.calls(operand, *_LOG_OF_CALL)
    if call is not None:
        name = _LOG_OF_CALL[words.context.called(call.func)]
        return f"{words.nn(name)}({_arguments(words, call)})"
    call = words.calls(operand, "jax.numpy.linalg.det")
    if call is not None:
        return f"{words.text(call.func).removesuffix('det')}slogdet({_arguments(words, call)})[1]"
    if isinstance(operand, ast.Call) and isinstance(operand.func, ast.Attribute):
        stable = _DENSITIES.get(operand.func.attr)
        if stable and words.context.called(operand.func).startswith("jax.scipy.stats."):
            name = f"{words.text(operand.func.value)}.{stable}"
            return f"{name}({_arguments(words, operand)})"
    reduced = words.reduced(operand, "sum")
    if reduced is not None:
        x = words.argument(reduced[0], "exp")
        return f"{words.nn('logsumexp')}({words.text(x)}{reduced[1]})" if x is not None else ""
    match operand:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _log_of_sum(words, left, right)
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=right):
            x = words.argument(right, *_SIGMOIDS)
            if x is not None:
                return f"{words.nn('log_sigmoid')}({words.negated(x)})"
            x = words.argument(right, "exp")
            if x is not None:
                return f"{words.jnp('log')}(-{words.jnp('expm1')}({words.text(x)}))"
            return f"{words.jnp('log1p')}({words.negated(right)})"
        case _:
            return ""


def _log_of_sum(words: _Words, left: ast.expr, right: ast.expr) -> str:
    for term, other_term in ((left, right), (right, left)):
        if isinstance(term, ast.Constant) and term.value == 1:
            x = words.argument(other_term, "exp")
            if x is not None:
                return f"{words.nn('softplus')}({words.text(x)})"
            if words.reduced(other_term, "sum") is not None:
                return ""
            return f"{words.jnp('log1p')}({words.text(other_term)})"
    a, b = (words.argument(side, "exp") for side in (left, right))
    if a is None or b is None:
        return ""
    return f"{words.jnp('logaddexp')}({words.text(a)}, {words.text(b)})"


def _of_difference(words: _Words, node: ast.BinOp) -> str:
    match node:
        case ast.BinOp(left=left, right=ast.Constant(value=1)):
            x = words.argument(left, "exp")
            return f"{words.jnp('expm1')}({words.text(x)})" if x is not None else ""
        case ast.BinOp(left=ast.Constant(value=1), right=right):
            x = words.argument(right, "exp")
            if x is not None:
                return f"-{words.jnp('expm1')}({words.text(x)})"
            x = words.argument(right, "jax.scipy.special.erf", "jax.lax.erf")
            if x is not None and isinstance(right, ast.Call):
                if isinstance(right.func, ast.Attribute):
                    return f"{words.text(right.func)}c({words.text(x)})"
                return f"jax.scipy.special.erfc({words.text(x)})"
            return ""
        case _:
            return _variance(words, node)


def _variance(words: _Words, node: ast.BinOp) -> str:
    """Return the variance for `mean(x**2) - mean(x)**2`."""
    of_squares = words.reduced(node.left, "mean")
    squared = _squared(words, node.right)
    mean = words.reduced(squared, "mean") if squared is not None else None
    if of_squares is None or mean is None or of_squares[1] != mean[1]:
        return ""
    base = _squared(words, of_squares[0])
    if base is None or not same(base, mean[0]):
        return ""
    return f"{words.jnp('var')}({words.text(base)}{mean[1]})"


def _squared(words: _Words, node: ast.expr) -> ast.expr | None:
    """Return what an expression is the square of."""
    match node:
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
            return left
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if same(left, right):
            return left
        case _:
            return words.argument(node, "square")


def _of_quotient(words: _Words, node: ast.BinOp) -> str:
    x = words.argument(node.left, "exp")
    if x is None:
        return ""
    total = words.reduced(node.right, "sum")
    if total is not None:
        inner = words.argument(total[0], "exp")
        if inner is None or not same(inner, x):
            return ""
        axis = total[1].replace(", keepdims=True", "")
        return f"{words.nn('softmax')}({words.text(x)}{axis or ', axis=None'})"
    y = words.argument(node.right, "exp")
    if y is not None:
        return f"{words.jnp('exp')}({words.text(x)} - {words.context.operand(y)})"
    match node.right:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            for term, other_term in ((left, right), (right, left)):
                inner = words.argument(other_term, "exp")
                if isinstance(term, ast.Constant) and term.value == 1 and inner is not None:
                    return f"{words.nn('sigmoid')}({words.text(x)})" if same(inner, x) else ""
    return ""


def _arguments(words: _Words, call: ast.Call) -> str:
    text: Callable[[ast.expr], str] = words.text
    named = [f"{key.arg}={text(key.value)}" for key in call.keywords if key.arg]
    return ", ".join([*map(text, call.args), *named])


# Numbers that are right, for what it takes to compute them.
REMEDY = Remedy(
    "the stable function in place of the expression",
    candidates,
    trades=figures.ALL,
    costs_any=True,
)
