"""Reduces inside loops and branches: fewer iterations or one, equations of their bodies."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import jax
import numpy as np
from jax import lax

from jaxsight_repro.compat.mesh_equations import mesh_axes
from jaxsight_repro.compat.retyping import needed, retyped
from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.equations.candidates import (
    Keys,
    Shrunk,
    Value,
    cheaper,
    is_bound,
    reads,
    weight,
    zeros,
)
from jaxsight_repro.reducing.equations.inlining import Copy
from jaxsight_repro.reducing.equations.recording import Recorded
from jaxsight_repro.reducing.equations.sizes import Retyping
from jaxsight_source.compat import avals, control_flow, staging
from jaxsight_source.compat.avals import is_key
from jaxsight_source.compat.inner import all_jaxprs, inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Jaxpr, Var


def unwrap(candidate: Shrunk, checker: Checker[Shrunk], recorded: Recorded) -> Shrunk:
    """Replace branches and loops by a single branch or iteration, where that suffices."""

    def tries(candidate: Shrunk) -> Iterator[Shrunk | None]:
        for index, equation in enumerate(candidate.equations):
            for body, operands in _bodies(equation):
                yield _once(candidate, index, body, operands, recorded.values)

    return checker.exhausted(candidate, tries)


def shorten(candidate: Shrunk, checker: Checker[Shrunk], recorded: Recorded) -> Shrunk:
    """Make loops run fewer times."""

    def tries(candidate: Shrunk) -> Iterator[Shrunk | None]:
        shorter = (
            _once(candidate, index, body, operands, recorded.values)
            for index, equation in enumerate(candidate.equations)
            for body, operands in counted(equation)
        )
        yield from cheaper(candidate, shorter)
        stricter = (
            replace(candidate, equations=tuple(equations), eager={})
            for equations in bounded(candidate.equations)
        )
        yield from cheaper(candidate, stricter)

    return checker.exhausted(candidate, tries)


def _bodies(equation: Equation) -> Iterator[tuple[object, Sequence[Atom]]]:
    """Yield the bodies of a loop or a branch, each with the operands of its first run."""
    match equation.primitive.name:
        case "cond":
            for branch in equation.params["branches"]:
                yield branch, equation.invars[1:]
        case "scan":
            yield control_flow.scan(equation.params).body, equation.invars
        case "while":
            test, for_test, body, for_body, carry = control_flow.while_loop(
                equation, equation.invars
            )
            yield body, [*for_body, *carry]
            yield test, [*for_test, *carry]


def _once(
    candidate: Shrunk,
    index: int,
    body: object,
    operands: Sequence[Atom],
    values: Mapping[int, Value],
) -> Shrunk | None:
    """Return a candidate in which a body takes the place of an equation.

    Operands that have an additional axis, or a longer one, are replaced by their first slices.
    """
    program = staging.opened(body)
    known = dict(zip(map(id, candidate.inputs), candidate.arguments, strict=True))
    copy = Copy(candidate)
    for position, equation in enumerate(candidate.equations):
        if position != index:
            copy.add(equation)
            continue
        atoms: list[Atom] = []
        for operand, var in zip(operands, program.jaxpr.invars, strict=True):
            atom = copy.read(operand)
            if avals.text(operand.aval) != avals.text(var.aval):
                value = _slice(known.get(id(operand), values.get(id(operand))), var)
                if value is None:
                    return None
                atom = staging.new_variable(var.aval)
                copy.feed(atom, value)
            atoms.append(atom)
        results = copy.run(program, atoms)
        for var, result in zip(equation.outvars, results, strict=False):
            if avals.text(var.aval) == avals.text(result.aval):
                copy.replace(var, result)
        # What is read of its results and the body does not have becomes an input.
        read = reads(candidate.equations[index + 1 :])
        for var in equation.outvars:
            if id(var) in read and copy.read(var) is var:
                value = values.get(id(var), zeros(var.aval))
                if value is not None:
                    copy.feed(var, value)
        copy.outputs += results
    return copy.finish()


def _slice(value: Value | None, var: Var) -> Value | None:
    if value is None:
        return zeros(var.aval)
    data = value.data if isinstance(value, Keys) else value
    if not data.ndim or not len(data):
        return None
    shape = var.aval.shape
    is_shorter = data.ndim - isinstance(value, Keys) == len(shape)
    part = data[: shape[0]] if is_shorter else data[0]
    return Keys(part, value.impl) if isinstance(value, Keys) else part


def thin(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Delete equations inside the inner programs of a candidate, at every level."""
    inside = itertools.chain.from_iterable(map(inner_jaxprs, candidate.equations))
    levels = itertools.chain.from_iterable(all_jaxprs(part.value) for part in inside)
    size = max((len(staging.open_jaxpr(jaxpr).eqns) for jaxpr in levels), default=0)
    while size:
        rewritten = (
            Shrunk(candidate.inputs, candidate.arguments, tuple(equations), candidate.outputs)
            for equations in _rewritten(candidate.equations, size)
        )
        tries: Iterator[Shrunk | None] = rewritten
        if mesh_axes(candidate.equations):  # types say over which axes values in shards vary
            tries = map(Retyping().candidate, rewritten)
        smaller = checker.first(cheaper(candidate, tries))
        if smaller is not None:
            candidate = smaller
        else:
            size //= 2
    return candidate


def prune(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Remove what no output needs, such as unused carries of loops and operands of kernels."""
    if any(equation.primitive.name == "pallas_call" for equation in candidate.equations):
        traced_again = [Retyping().candidate(candidate)]
        candidate = checker.first(cheaper(candidate, traced_again)) or candidate
    try:
        equations, used = needed(candidate.inputs, candidate.equations, candidate.outputs)
    except Exception:  # noqa: BLE001 - a rule of JAX that does not know a primitive
        return candidate
    smaller = Shrunk(
        tuple(var for var, read in zip(candidate.inputs, used, strict=True) if read),
        tuple(value for value, read in zip(candidate.arguments, used, strict=True) if read),
        tuple(equations),
        candidate.outputs,
    )
    if not equations:
        return candidate
    return checker.first(cheaper(candidate, [smaller])) or candidate


def _rewritten(equations: Sequence[Equation], size: int) -> Iterator[list[Equation]]:
    """Yield equations with one of their inner programs made smaller."""
    for position, equation in enumerate(equations):
        for part in inner_jaxprs(equation):
            for smaller in _smaller(part.jaxpr, size):
                if part.parameter == "cond_jaxpr" and not _uses_inputs(smaller):
                    continue  # a loop that runs forever, or never
                params = part.exchanged(equation.params, staging.with_inner(part.value, smaller))
                renewed = equation.replace(params=params)
                yield [*equations[:position], renewed, *equations[position + 1 :]]


def _uses_inputs(jaxpr: Jaxpr) -> bool:
    """Return whether the outputs of a program depend on its inputs."""
    read = reads(_live(jaxpr.eqns, jaxpr.outvars)) | set(map(id, jaxpr.outvars))
    return any(id(var) in read for var in jaxpr.invars)


def _smaller(jaxpr: Jaxpr, size: int) -> Iterator[Jaxpr]:
    """Yield a program without each run of `size` equations, and with smaller inner programs."""
    for end in range(len(jaxpr.eqns), 0, -size):
        start = max(end - size, 0)
        if size > len(jaxpr.eqns) and start == 0 and end < len(jaxpr.eqns):
            continue
        for filling in ("operand", "input", "ones", "zeros"):
            smaller = _without(jaxpr, start, end, filling)
            if smaller is not None:
                yield smaller
    for equations in _rewritten(jaxpr.eqns, size):
        yield jaxpr.replace(eqns=equations)


def _without(jaxpr: Jaxpr, start: int, end: int, filling: str) -> Jaxpr | None:
    """Return a program without some equations, whose results are replaced.

    Return None if a result cannot be replaced in this way.
    """
    rest = jaxpr.eqns[end:]
    read = reads(rest) | set(map(id, jaxpr.outvars))
    added: list[Equation] = []
    replacements: dict[int, Atom] = {}
    for equation in jaxpr.eqns[start:end]:
        if not _only_reads(equation):
            return None
        for var in equation.outvars:
            if staging.is_dropped(var) or id(var) not in read:
                continue
            given: Sequence[Atom] = (*jaxpr.invars, *jaxpr.constvars)
            if filling == "operand":
                given = staging.substituted(equation.invars, replacements)
            made = _filling(var, filling, given)
            if made is None:
                return None
            replacements[id(var)], equations = made
            added += equations
    later = [each.replace(invars=staging.substituted(each.invars, replacements)) for each in rest]
    outputs = staging.substituted(jaxpr.outvars, replacements)
    kept = _live([*jaxpr.eqns[:start], *added, *later], outputs)
    return jaxpr.replace(eqns=kept, outvars=outputs) if weight(kept) < weight(jaxpr.eqns) else None


def _only_reads(equation: Equation) -> bool:
    """Return whether an equation has no effects but reads of references.

    Writes stay: what no kernel writes has any value, so a NaN there is another failure.
    """
    return all(type(effect).__name__ == "ReadEffect" for effect in equation.effects)


def _live(equations: Sequence[Equation], outputs: Sequence[Atom]) -> list[Equation]:
    """Return the equations that outputs need, or that have effects."""
    read = {id(atom) for atom in outputs}
    kept: list[Equation] = []
    for equation in reversed(equations):
        if not _only_reads(equation) or any(id(var) in read for var in equation.outvars):
            kept.append(equation)
            read.update(map(id, equation.invars))
    return kept[::-1]


def _text(atom: Atom) -> str:
    """Return the type of an atom, without the mesh axes over which it varies."""
    return re.sub(r"\{V:.*\}$", "", avals.text(atom.aval))


def _filling(var: Var, filling: str, given: Sequence[Atom]) -> tuple[Atom, list[Equation]] | None:
    """Return what replaces a variable, with the equations that make it: one of `given`, or ones."""
    if filling in ("operand", "input"):
        same = [each for each in given if _text(each) == _text(var)]
        return (same[0], []) if same else None
    if is_key(var.aval) or not hasattr(var.aval, "dtype"):
        return None
    number = np.asarray(filling == "ones").astype(var.aval.dtype)[()]
    if not var.aval.shape:
        return staging.new_literal(number, var.aval), []
    staged = staging.stage(lambda: lax.full(var.aval.shape, number, var.aval.dtype), [])
    jaxpr = staged.program.jaxpr
    return (jaxpr.outvars[0], list(jaxpr.eqns)) if not staged.program.consts else None


def counted(equation: Equation) -> Iterator[tuple[staging.Program, Sequence[Atom]]]:
    """Yield loops with fewer iterations in place of a loop, as programs of some of its operands.

    Inputs with an axis for iterations have the new length.
    """
    if equation.primitive.name == "scan":
        loop, operands = control_flow.scan(equation.params), equation.invars
        lengths: Sequence[int] = _fewer(loop.length)
    elif equation.primitive.name == "while":
        _, _, body, consts, carry = control_flow.while_loop(equation, equation.invars)
        operands, lengths = [*consts, *carry], _COUNTS
        loop = control_flow.Scan(len(consts), len(carry), body, 0, False, 1, False)
    else:
        return
    for length in lengths:
        try:
            with equation.ctx.manager:
                program = _loop(loop, length)
        except Exception:  # noqa: BLE001 - a body that can only be traced where it was
            return
        yield program, operands


_COUNTS = (2, 3, 4, 8, 16)
"""Iterations that are tried in place of a `while` of any number of them, a choice: errors that need
more are rare, and each costs a run."""


def _fewer(count: int) -> list[int]:
    """Return smaller numbers of iterations: small ones first, then one that is a bit smaller."""
    powers = [1 << power for power in range(1, count.bit_length())]
    tries = {1, 3, *powers, count - count // 4, count - 1}
    return sorted(new for new in tries if 1 <= new < count)


def _loop(loop: control_flow.Scan, length: int) -> staging.Program:
    """Return a program that runs the body of a loop so many times."""
    first = loop.consts + loop.carry

    def run(*operands: jax.Array) -> list[jax.Array]:
        def step(
            carry: Sequence[jax.Array], x: Sequence[jax.Array]
        ) -> tuple[list[jax.Array], list[jax.Array]]:
            results = staging.evaluate(loop.body, *operands[: loop.consts], *carry, *x)
            return results[: loop.carry], results[loop.carry :]

        start, xs = list(operands[loop.consts : first]), list(operands[first:])
        carry, ys = lax.scan(step, start, xs, length, reverse=loop.reverse, unroll=loop.unroll)
        return [*carry, *ys]

    inputs = loop.body.jaxpr.invars
    types = [var.aval for var in inputs[:first]]
    rows = (var.aval for var in inputs[first:])
    types += [retyped(row, (length, *row.shape), row.dtype) for row in rows]
    return staging.stage(run, types).program


def bounded(equations: Sequence[Equation]) -> Iterator[list[Equation]]:
    """Yield equations in which one loop, at any level, has a smaller bound.

    That is the length of a `scan` over no arrays, or an integer in the condition of a `while` or
    among its operands.
    """
    for position, equation in enumerate(equations):
        for renewed in _with_smaller_bound(equation):
            yield [*equations[:position], renewed, *equations[position + 1 :]]


def _with_smaller_bound(equation: Equation) -> Iterator[Equation]:
    params = equation.params
    if equation.primitive.name == "scan":
        loop = control_flow.scan(params)
        inputs = len(equation.invars) - loop.consts - loop.carry
        if not inputs and len(equation.outvars) == loop.carry:
            for length in _fewer(loop.length):
                yield equation.replace(params={**params, "length": length})
    elif equation.primitive.name == "while":
        for invars in _smaller_integers(equation.invars):
            yield equation.replace(invars=invars)
        tested = staging.open_jaxpr(params["cond_jaxpr"])
        for position, each in enumerate(tested.eqns):
            for invars in _smaller_integers(each.invars):
                changed = each.replace(invars=invars)
                eqns = [*tested.eqns[:position], changed, *tested.eqns[position + 1 :]]
                program = staging.with_inner(params["cond_jaxpr"], tested.replace(eqns=eqns))
                yield equation.replace(params={**params, "cond_jaxpr": program})
    for part in inner_jaxprs(equation):
        for eqns in bounded(part.jaxpr.eqns):
            inner = staging.with_inner(part.value, part.jaxpr.replace(eqns=eqns))
            yield equation.replace(params=part.exchanged(params, inner))


def _smaller_integers(atoms: Sequence[Atom]) -> Iterator[list[Atom]]:
    for position, atom in enumerate(atoms):
        if is_bound(atom):
            for new in _fewer(int(atom.val)):
                number = new if avals.weak(atom.aval) else np.asarray(new, atom.aval.dtype)[()]
                yield [
                    *atoms[:position],
                    staging.new_literal(number, atom.aval),
                    *atoms[position + 1 :],
                ]
