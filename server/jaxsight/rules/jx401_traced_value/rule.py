"""JX401: a traced value is used as a Python number, index or shape, or as a NumPy array."""

# Longer than most rules: a table of conversions, and a fix that makes one expression of statements.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.failure_text import assigns_item, aval, culprits
from jaxsight.rules.fixing import constants
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.in_place import in_place
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import cut
from jaxsight.source.text import Edit, Range

RULE = Rule(
    __name__, "Traced value used where Python or NumPy needs a concrete one.", needs_value=True
)


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize JAX's conversion errors and the two `TypeError`s that mean the same."""
    advice = _advice(error, " ".join(error.expression.split()), error.line.strip())
    if advice is None:
        return None
    names = culprits(error.failure) if advice.may_be_static else ""
    static = f", or make {names} static (`static_argnames`)" if names else ""
    type = aval(error.failure)
    kind = f"a traced {cut(type, 18)}" if type else "a traced value"
    return Violation(
        f"{error.quoted('this function', most=36)} {advice.problem.format(kind)}",
        help=f"{advice.help}{static}",
        notes=(advice.why,),
    )


@dataclass(frozen=True, slots=True)
class _Advice:
    problem: str
    """What the expression does, with `{}` for the traced value."""
    help: str
    may_be_static: bool = False
    """Whether a value of this kind can be a static argument: an integer or a flag, no array."""
    why: str = "the value is only known when the function runs"


_IN_PYTHON = "uses {} where Python needs its value"
_SIZES = "sizes of arrays must be known while tracing"


def _advice(error: RaisedError, text: str, line: str) -> _Advice | None:
    message = error.message
    if error.is_a("TracerBoolConversionError"):
        return _of_bool(text, line, is_scalar=aval(error.failure)[-2:] in ("", "[]"))
    if error.is_a("NonConcreteBooleanIndexError"):
        return _Advice(
            "selects by a traced mask",
            "keep the size with `jnp.where(mask, x, fill)`, or pass `size=` to `jnp.nonzero`",
            why="the size of the result depends on the values of the mask",
        )
    if error.is_a("TracerIntegerConversionError"):
        return _Advice(
            _IN_PYTHON,
            "loop with `jax.lax.fori_loop` or `jax.lax.scan`, or index a `jnp` array",
            may_be_static=True,
        )
    if error.is_a("TracerArrayConversionError"):
        if assigns_item(text, line):
            return None  # JX416
        return _Advice(
            "uses {} where NumPy needs its value",
            "use the function of the same name in `jax.numpy`",
        )
    if error.is_a("ConcretizationTypeError"):
        return _of_concrete(text, message)
    if message.startswith("Shapes must be 1D sequences of concrete values"):
        return _Advice(
            "uses {} as a shape",
            "take the size from another array's `.shape`",
            may_be_static=True,
            why=_SIZES,
        )
    if error.is_a("IndexError") and "slice(" in message and "Tracer" in message:
        return _Advice(
            "slices with a traced bound",
            "use `jax.lax.dynamic_slice_in_dim(x, start, size)` with a static size, or mask with "
            "`jnp.where`",
            why="the size of the result must be known while tracing",
        )
    if error.is_a("TypeError") and "__format__" in message and "Tracer" in message:
        return _Advice(
            "formats {} as text",
            'print it with `jax.debug.print("{x:.3f}", x=x)`',
        )
    if "unhashable type" in message and "Tracer" in message:
        return _Advice(
            "looks up {} in a Python dict or set",
            "index a `jnp` array, or select with `jax.lax.switch`",
        )
    return None


_STATEMENTS = {
    "assert": "check it when the function runs: `checkify.check(ok, message)`, or `eqx.error_if`",
    "while": "loop with `jax.lax.while_loop`",
    "match": "select with `jax.lax.switch(index, branches, x)`",
    "case": "select with `jax.lax.switch(index, branches, x)`",
}
"""By the statement that needs a bool: how JAX does it."""
_OF_BOOL = {
    "max": "use `jnp.maximum(a, b)`, or `jnp.max(x)` for an array",
    "min": "use `jnp.minimum(a, b)`, or `jnp.min(x)` for an array",
    "sorted": "use `jnp.sort(x)`",
    "any": "use `jnp.any(x)`",
    "all": "use `jnp.all(x)`",
    "bool": "keep it an array, and combine with `&`, `|` and `~`",
}
"""By the call that needs a bool: how JAX does it."""
_FLAG = re.compile(r"(?:not )?\w+|\w+ [!=]= \d+")
"""Conditions that test a flag or a mode: a name, or a name compared with an integer."""


def _of_bool(text: str, line: str, *, is_scalar: bool) -> _Advice:
    """Return how to branch, compare or sort without a Python bool."""
    help = _STATEMENTS.get(re.split(r"\W", line, maxsplit=1)[0])
    for name, of_call in _OF_BOOL.items():
        if help is None and re.search(rf"(?<![\w.]){name}\(", text):
            help = of_call
    if help is not None:
        return _Advice(_IN_PYTHON, help)
    cond = "`jnp.where` or `jax.lax.cond`" if is_scalar else "`jnp.where`, or reduce with `jnp.any`"
    return _Advice(
        _IN_PYTHON,
        f"select with {cond}, and combine conditions with `&`, `|` and `~`",
        may_be_static=_FLAG.fullmatch(text) is not None,
    )


_SIZED = {
    "repeat": "pass `total_repeat_length=` to `jnp.repeat`",
    r"(?:nonzero|flatnonzero|argwhere|unique\w*|where|setdiff1d|union1d|intersect1d)": (
        "pass a static `size=`, and a `fill_value=`"
    ),
    "bincount": "pass `length=` to `jnp.bincount`",
}
"""By the call whose result has a size of its own: how JAX knows it."""


def _of_concrete(text: str, message: str) -> _Advice:
    """Return how to avoid the concrete number."""
    if re.search(r"\.item\(|\.tolist\(|(?<![\w.])(?:float|int|complex)\(", text):
        return _Advice(
            "converts {} to a Python number",
            "keep it an array: convert with `.astype(…)`, print with `jax.debug.print`",
        )
    for name, help in _SIZED.items():
        if re.search(rf"\b{name}\(", text):
            return _Advice("has a size that depends on {}", help, why=_SIZES)
    if "axis argument must be known statically" in message and "axis" not in text:
        return _Advice(
            "gets {} as its axis",
            "compare two arrays with `jnp.maximum(a, b)` or `jnp.minimum(a, b)`; give an axis as a "
            "Python integer",
            why="the second argument of reductions is the axis",
        )
    if "problem arose with the" in message:
        return _Advice(
            "converts {} to a Python number",
            "keep it an array: convert with `.astype(…)` or `jnp.asarray`",
        )
    return _Advice(
        "uses {} as a size, an axis or a count",
        "take the size from another array's `.shape`",
        may_be_static=True,
        why="sizes, axes and counts must be known while tracing",
    )


# The fix: write both results of an `if` on a traced value as one expression.


@RULE.fixes(
    "`jnp.where` or `jax.lax.cond` for an `if` that returns or assigns; `jnp` instead of `np`"
)
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `jnp.where` and `jax.lax.cond` for an `if`, and `jnp` in place of a NumPy function."""
    conditional = _conditional(context)
    if conditional is not None and context.jnp:
        where, cond = f"{context.jnp}.where", f"{context.lax}.cond"
        for title, choice, imports in (
            (f"Select with `{where}`", f"{where}({{}}, {{}}, {{}})", ()),
            (
                f"Branch with `{cond}`",
                f"{cond}({{}}, lambda: {{}}, lambda: {{}})",
                context.jax_import(),
            ),
        ):
            edit = _rewritten(context, conditional, choice)
            if edit is not None:
                # The edit drops comments, which only the user may decide.
                safe = "#" not in context.module.slice_text(edit.range)
                yield Candidate(title, (*imports, edit), safe)
        return
    yield from constants.by_jnp(context)
    yield from in_place(context)


def _conditional(context: FixContext) -> ast.If | ast.IfExp | None:
    """Return the conditional whose test the finding is about."""
    extent = context.finding.range
    for node in (context.node, *context.ancestors(context.node)):
        if isinstance(node, ast.If | ast.IfExp):
            test = context.range(node.test)
            if test.start <= extent.start and extent.end <= test.end:
                return node
    # Python has no positions for the parts of a comprehension.
    inside = list(context.find(ast.IfExp))
    return inside[0] if len(inside) == 1 else None


def _rewritten(context: FixContext, conditional: ast.If | ast.IfExp, choice: str) -> Edit | None:
    """Return the edit that writes both results by a choice: `jnp.where({}, {}, {})`."""
    if isinstance(conditional, ast.IfExp):
        values = map(context.text, (conditional.body, conditional.orelse))
        text = choice.format(_test(context, conditional.test), *values)
        return context.replace(conditional, text)
    if not context.begins_line(conditional):  # an `elif`
        parent = context.parents.get(conditional)
        return _rewritten(context, parent, choice) if isinstance(parent, ast.If) else None
    after = _after(context, conditional)
    value = _returned(context, [conditional, *after], choice)
    if value is not None:
        last = next((each for each in (conditional, *after) if _ends([each])), conditional)
        extent = Range(context.range(conditional).start, context.range(last).end)
        return Edit(extent, f"return {value}")
    assigned = _assigned(context, conditional, choice)
    return context.replace(conditional, assigned) if assigned is not None else None


def _after(context: FixContext, node: ast.stmt) -> Sequence[ast.stmt]:
    parent = context.parents.get(node)
    blocks = (getattr(parent, name, ()) for name in ("body", "orelse", "finalbody"))
    return next((block[block.index(node) + 1 :] for block in blocks if node in block), ())


def _ends(block: Sequence[ast.stmt]) -> bool:
    """Whether a block always returns."""
    match block:
        case [ast.Return()]:
            return True
        case [ast.If(body=body, orelse=orelse)]:
            return _ends(body) and _ends(orelse)
        case _:
            return False


def _returned(context: FixContext, block: Sequence[ast.stmt], choice: str) -> str | None:
    """Return the value that a block returns, as one expression."""
    match block:
        case [ast.Return(value=ast.expr() as value), *_]:
            return context.text(value)
        case [ast.If(test=test, body=body, orelse=orelse), *after]:
            yes = _returned(context, [*body, *after], choice)
            no = _returned(context, [*orelse, *after], choice)
            return choice.format(_test(context, test), yes, no) if yes and no else None
        case _:
            return None


def _assigned(context: FixContext, conditional: ast.If, choice: str) -> str | None:
    """Return one assignment for `y = …` in each branch, or in one of them."""
    match conditional.body, conditional.orelse:
        case (
            [ast.Assign(targets=[ast.Name(id=name)], value=yes)],
            [ast.Assign(targets=[ast.Name(id=other_name)], value=no)],
        ) if name == other_name:
            no_text = context.text(no)
        case ([ast.Assign(targets=[ast.Name(id=name)], value=yes)], []):
            no_text = name
        case _:
            return None
    return f"{name} = {choice.format(_test(context, conditional.test), context.text(yes), no_text)}"


def _test(context: FixContext, test: ast.expr) -> str:
    """Return a condition without `and`, `or` and `not`."""
    match test:
        case ast.BoolOp(op=op, values=values):
            joint = " & " if isinstance(op, ast.And) else " | "
            return joint.join(f"({_test(context, value)})" for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"{context.jnp}.logical_not({_test(context, operand)})"
        case _:
            return context.text(test)
