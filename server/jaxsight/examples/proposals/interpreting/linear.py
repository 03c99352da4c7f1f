"""What products and factorizations of matrices demand of their operands."""

from __future__ import annotations

import re

from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Const,
    Param,
    Value,
)
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape
from jaxsight.examples.proposals.interpreting.uses import LibraryCall, as_array

_MATRIX = re.compile(r"[A-Z]|(?:.*_)?[wW]\d*|(?:.*_)?weights?")


def matmul(left: Value, right: Value) -> Value:
    """Return a matrix product; the contracted sizes are the same."""
    one, two = as_array(left), as_array(right)
    if one is not None:
        one.at_least(1)
    if two is not None:
        two.at_least(1)
    if one is None or two is None:
        return Arr(Shape(), loose=True)
    is_vector = two.find().likely == 1 and two.find().least <= 1
    if two.find().rank is None and two.find().likely is None and two.find().least <= 1:
        # `A @ x` is a product with a vector as people write it, `x @ w` one with a matrix.
        is_vector = _is_matrix(left) and not _is_matrix(right)
        if is_vector:
            one.set_rank(2)
        two.find().likely = 1 if is_vector else None
    if two.find().rank == 1 or (two.find().rank is None and is_vector):
        one.dim(-1).unify(two.dim(-1))
        dims = one.dims
        return Arr(Shape.of(dims[:-1])) if dims else Arr(Shape(), loose=True)
    if two.find().rank is None:
        two.suggest(2)
    two.at_least(2)
    one.dim(-1).unify(two.dim(-2))
    last = two.dim(-1)
    dims = one.dims
    if dims is None:
        result = Shape(back={0: last}, least=1)
        if one.find().least >= 2 or one.find().likely == 2:
            result.back[1] = one.dim(-2)
        return Arr(result, loose=False)
    return Arr(Shape.of([*dims[:-1], last]))


def _is_matrix(value: Value) -> bool:
    """Return whether a parameter is called as matrices are: `A`, `w1`."""
    return isinstance(value, Param) and _MATRIX.fullmatch(value.evidence.name) is not None


def matmul_call(call: LibraryCall) -> Value:
    return matmul(*call.arguments[:2]) if len(call.arguments) > 1 else UNKNOWN


def einsum(call: LibraryCall) -> Value:
    match call.arguments:
        case [Const(str() as subscripts), *operands]:
            pass
        case _:
            for value in call.arguments:
                as_array(value)
            return Arr(Shape(), loose=True)
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    letters: dict[str, Dim] = {}
    for letter in sorted(set(subscripts) - set("->., ")):
        letters[letter] = Dim(name=letter.upper())
    for term, value in zip(inputs.split(","), operands, strict=False):
        shape = as_array(value)
        if shape is None:
            continue
        front, ellipsis, back = term.partition("...")
        if not ellipsis:
            shape.set_rank(len(front))
        shape.at_least(len(front) + len(back))
        for i, letter in enumerate(front):
            shape.dim(i).unify(letters[letter])
        for i, letter in enumerate(reversed(back), start=1):
            shape.dim(-i).unify(letters[letter])
    terms = inputs.split(",")
    for i, term in enumerate(terms[: len(operands) - 1]):
        one, two = as_array(operands[i]), as_array(operands[i + 1])
        if "..." in term and terms[i + 1] == term and one is not None and two is not None:
            call.links.append((one, two))
    if not arrow or "..." in output:
        return Arr(Shape(), loose=True)
    return Arr(Shape.of([letters[letter] for letter in output if letter in letters]))


def rearranged(call: LibraryCall) -> Value:
    """`einops.rearrange(x, "b (h w) c -> b h w c")` and the like: the left side names all axes."""
    match call.get(0), call.get(1, "pattern"):
        case (Param() | Arr()) as value, Const(str() as pattern) if "->" in pattern:
            axes = re.findall(r"\([^)]*\)|\S+", pattern.partition("->")[0])
            shape = as_array(value)
            if shape is not None and not {"...", "1"} & {*axes}:
                shape.set_rank(len(axes))
                for i, axis in enumerate(axes):
                    shape.dim(i).unify(Dim(name=axis if axis.isidentifier() else ""))
    return Arr(Shape(), loose=True)


def square(call: LibraryCall, shape: Shape) -> Value:
    shape.at_least(2)
    shape.dim(-1).unify(shape.dim(-2))
    return Arr(shape)


def matrix(call: LibraryCall, shape: Shape) -> Value:
    shape.at_least(2)
    return UNKNOWN
