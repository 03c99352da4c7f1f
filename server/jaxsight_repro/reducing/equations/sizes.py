"""Makes arrays smaller: each size, wherever it occurs, at once; and dtypes."""

from __future__ import annotations

from functools import partial

import numpy as np

from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.equations.candidates import Candidate, cheaper, cost
from jaxsight_repro.reducing.equations.retyping import Retyping
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.pallas import kernel_call

_NARROWER = {
    "float64": "float32",
    "int64": "int32",
    "uint64": "uint32",
    "complex128": "complex64",
}


def shrink(candidate: Candidate, checker: Checker[Candidate]) -> Candidate:
    """Return a candidate of which no size can be made smaller."""
    sizes = _sizes_of(candidate)
    all_at_once = (
        Retyping({size: min(size, most) for size in sizes}).candidate(candidate)
        for most in (1, 2, 3, 4, 8)
        if sizes and sizes[0] > most
    )
    candidate = checker.first(cheaper(candidate, all_at_once)) or candidate
    done: set[int] = set()
    while remaining := [size for size in _sizes_of(candidate) if size not in done]:
        size = remaining[0]
        done.add(size)
        candidate = _smaller(candidate, size, checker)
    return candidate


def narrow(candidate: Candidate, checker: Checker[Candidate]) -> Candidate:
    """Return a candidate with narrower dtypes."""
    dtypes = {np.dtype(old): np.dtype(new) for old, new in _NARROWER.items()}
    changes = [Retyping(dtypes=dtypes), *(Retyping(dtypes={o: n}) for o, n in dtypes.items())]
    tries = cheaper(candidate, (change.candidate(candidate) for change in changes))
    return checker.first(tries) or candidate


def _sizes_of(candidate: Candidate) -> list[int]:
    """Return the sizes of axes in a candidate, largest first."""
    sizes = {size for var in candidate.inputs for size in _shape(var)}
    pending: list[Equation] = list(candidate.equations)
    while pending:
        equation = pending.pop()
        sizes.update(size for var in equation.outvars for size in _shape(var))
        if isinstance(length := equation.params.get("length"), int):
            sizes.add(length)
        if equation.primitive.name == "pallas_call":
            call = kernel_call(equation)
            sizes.update(size for size in call.grid if size is not None)
            sizes.update(size for block in call.blocks for size in block.sizes)
        for part in inner_jaxprs(equation):
            pending += part.jaxpr.eqns
    return sorted((size for size in sizes if size > 1), reverse=True)


def _shape(var: object) -> tuple[int, ...]:
    return tuple(getattr(getattr(var, "aval", None), "shape", ()))


def _smaller(candidate: Candidate, size: int, checker: Checker[Candidate]) -> Candidate:
    """Make one size as small as possible."""
    tries = sorted({1, 2, 3, *(1 << power for power in range(2, size.bit_length()))})
    tries = [new for new in tries if new < size]
    for joint in (True, False):
        resized = partial(_resized, candidate, size, joint=joint)
        found = checker.first(map(resized, tries))
        if found is None:
            continue
        # Sizes between the one that was found and the next smaller one that was tried.
        reached = next(
            new
            for new in tries
            if (again := resized(new)) is not None and cost(again) == cost(found)
        )
        low = max((new for new in tries if new < reached), default=0)
        while reached - low > 1:
            middle = (low + reached) // 2
            closer = checker.first([resized(middle)])
            if closer is None:
                low = middle
            else:
                reached, found = middle, closer
        return found
    return candidate


def _resized(candidate: Candidate, size: int, new: int, joint: bool) -> Candidate | None:
    """Return a candidate with another size, and with multiples of it if `joint`."""
    sizes = {size: new}
    if joint:
        multiples = [each for each in _sizes_of(candidate) if each > size and each % size == 0]
        sizes |= {each: each // size * new for each in multiples}
        kernels = (e for e in candidate.equations if e.primitive.name == "pallas_call")
        for block in (block for each in kernels for block in kernel_call(each).blocks):
            for whole, part in zip(block.array.shape, block.sizes, strict=True):
                if part == size < whole:
                    sizes[whole] = -(-whole // part) * new  # as many blocks
    return next(cheaper(candidate, [Retyping(sizes).candidate(candidate)]), None)
