"""JX213: a matrix is inverted to solve a linear system."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.patterns.syntax import SyntaxPatterns
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.matrices import (
    MOVES,
    Product,
    argument,
    is_identity,
    multiplies,
    only_of_constants,
    product,
    readers,
    scales,
)
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import called
from jaxsight.source.text import Edit
from jaxsight.wire.program import Step

RULE = Rule(__name__, "Matrix inverse used to solve a linear system.", severity="warning")

SOLVERS = ("inv", "solve", "cho_solve", "lu_solve", "solve_triangular")
"""Functions that give an inverse: the last ones when the right-hand side is an identity."""

TINY = 4
"""Rows of matrices that are inverted on purpose, as those of transformations of points are."""
_MANY, _MANY_INLINE = 4, 16
"""Right-hand sides for each row, above which an inverse may be meant to be used often: one with a
name, and one that stands in the product. A choice: lower misses systems with several right-hand
sides, higher reports inverses to be kept."""
_NEAR, _PRODUCTS = 20, 8
"""Equations above a product that are looked at, and products around it: what one line may have."""
_SOLVES = frozenset({"custom_linear_solve", "triangular_solve"})
_KEEPS = MOVES | _SOLVES | {"convert_element_type"}


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield products with an inverse that nothing else reads."""
    flow = view.flow
    for solved in flow.forward_steps(*_SOLVES):
        if view.called(solved) not in SOLVERS or not is_identity(flow, solved.operands[-1]):
            continue
        rows = flow.value(solved.results[0]).shape[-1]
        used = _only_reader(flow, solved)
        if used is None or rows < TINY or not multiplies(view, used.step.path):
            continue
        side = 0 if solved in _above(flow, used.step.operands[0]) else 1
        count = _right_hand_sides(flow, used, 1 - side)
        apart = solved.span != used.step.span and "inv(" not in view.quote(used.step.path)
        if count > (_MANY if apart else _MANY_INLINE) * rows or (rows == TINY and count > 1):
            continue
        is_hoisted = apart and _is_hoisted(view, solved, used.step)
        if is_hoisted or only_of_constants(flow, solved.operands[0]):
            continue
        yield Violation(
            f"inverse of a {rows}×{rows} matrix is only used to solve a linear system",
            used.step.path,
            help=_form(view, solved, used, side),
            notes=("inverting takes about three times the work of solving, and is less accurate",),
            related=((solved.path, "the inverse"),) if apart else (),
        )


def _form(view: ProgramView, solved: Step, used: Product, side: int) -> str:
    """Return what to write in place of a product with an inverse on its left or right side."""
    expression = view.quote(solved.path)
    name = called(expression)
    if name != "inv":
        return f"pass the other factor to `{name}` in place of the identity matrix"
    matrix = argument(expression, ("inv",), "a")
    bare = matrix[1:-1] if matrix.startswith("(") else matrix
    turned = [
        step
        for step in _above(view.flow, used.step.operands[side])
        if step.primitive == "transpose" and step.span != solved.span
    ]
    if side == 0:
        solution = f"jnp.linalg.solve({f'{matrix}.T' if turned else bare}, b)"
        return f"solve the system: `{solution}` for `inv({bare}){'.T' if turned else ''} @ b`"
    return f"solve the system: `jnp.linalg.solve({matrix}.T, b.T).T` for `b @ inv({bare})`"


def _only_reader(flow: Flow, solved: Step) -> Product | None:
    """Return the product that reads an inverse, where all that reads it is written in one place."""
    steps = readers(flow, solved.results[0], _KEEPS, scaled=True)
    if not steps or len({step.span for step in steps}) > 1:
        return None
    used = [step for step in steps if step.primitive == "dot_general"]
    return product(used[0]) if used and len(used) == len(steps) else None


def _is_hoisted(view: ProgramView, solved: Step, used: Step) -> bool:
    """Whether a function that is mapped or repeated uses an inverse from around it."""
    around, within = view.around(solved.path), view.around(used.path)
    if not around or not within:
        return False
    inner = within[-1]
    return inner is not around[-1] and any(node is inner for node in ast.walk(around[-1]))


def _above(flow: Flow, number: int) -> list[Step]:
    return list(
        flow.backwards(number, lambda step: step.primitive in _KEEPS or scales(flow, step), _NEAR)
    )


def _right_hand_sides(flow: Flow, used: Product, side: int) -> int:
    """Return how many vectors must be solved for, when the products around are made first.

    The 1000 columns of `inv(x.T @ x) @ x.T @ y` are none that must: `x.T @ y` has fewer.
    """
    count = used.columns(flow, side)
    for _ in range(_PRODUCTS):
        steps = readers(flow, used.step.results[0]) or []
        outer = product(steps[0]) if len(steps) == 1 else None
        if outer is None or outer.batch != ((), ()):
            break
        here = 0 if used.step in _above(flow, outer.step.operands[0]) else 1
        count = min(count, outer.columns(flow, 1 - here))
        used = outer
    return count


# The fix: solve the system that an inverse was used for.

_INVERSE = "inv(a) | inv(a).T"
_ANY, _VECTOR, _MATRIX = 0, 1, 2
_ROWS = (
    ("inv(a) @ b @ c", _MATRIX, "jnp.linalg.solve({a}, {(b)} @ {(c)})"),
    ("inv(a).T @ b @ c", _MATRIX, "jnp.linalg.solve({a^T}, {(b)} @ {(c)})"),
    ("b @ inv(a) @ c", _ANY, "{(b)} @ jnp.linalg.solve({a}, {c})"),
    ("b @ inv(a).T @ c", _ANY, "{(b)} @ jnp.linalg.solve({a^T}, {c})"),
    ("inv(a) @ b", _ANY, "jnp.linalg.solve({a}, {b})"),
    ("inv(a).T @ b", _ANY, "jnp.linalg.solve({a^T}, {b})"),
    ("b @ inv(a)", _VECTOR, "jnp.linalg.solve({a^T}, {b})"),
    ("b @ inv(a).T", _VECTOR, "jnp.linalg.solve({a}, {b})"),
    ("b @ inv(a)", _MATRIX, "jnp.linalg.solve({a^T}, {b^T}){turn}"),
    ("b @ inv(a).T", _MATRIX, "jnp.linalg.solve({a}, {b^T}){turn}"),
)
"""What is written, how many axes `b` has (two or more are a matrix), and what to write instead.

Chains are solved from their ends, where the fewest right-hand sides are.
"""


@RULE.fixes("`jnp.linalg.solve` instead of a product with the inverse")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `solve(a, b)` for `inv(a) @ b`, and the like with the inverse on the right."""
    for node in context.nodes if context.jnp else ():
        chain = context.parents.get(node)
        products = [chain] if isinstance(chain, ast.BinOp) and chain.left is node else []
        for factor in [*products, node]:
            edits = _solved(context, factor) if isinstance(factor, ast.expr) else ()
            if edits:
                yield Candidate("Solve the system without the inverse", edits)
                return


def _solved(context: FixContext, product: ast.expr) -> tuple[Edit, ...]:
    """Return the edits that put the solution of a system in a product's place.

    A name is looked up if it is assigned once and read once; the assignment goes.
    """
    patterns = SyntaxPatterns(context, looks_up=True, methods=True)
    for pattern, axes, template in _ROWS:
        found = patterns.at(product, pattern)
        if found is None or axes not in (_ANY, min(rank := patterns.rank(found["b"]), _MATRIX)):
            continue
        text = patterns.filled(template, {**found, "turn": ".T" if rank == _MATRIX else ".mT"})
        if template.startswith("{"):
            text = context.bracketed(product, text)
        edits = [context.replace(product, text)]
        for name in (part for part in ast.walk(product) if isinstance(part, ast.Name)):
            assigned = context.parents.get(context.value_of(name))
            if isinstance(assigned, ast.Assign) and patterns.at(assigned.value, _INVERSE):
                if context.only_use(assigned) is not name:
                    return ()
                edits.append(context.without(assigned))
        return tuple(edits)
    return ()
