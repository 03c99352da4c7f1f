"""Traced, lowered and exported functions, with what JAX keeps of arguments and results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import jax

from jaxsight_source.compat import avals
from jaxsight_source.compat.lowered import stages
from jaxsight_source.compat.staging import evaluate, opened
from jaxsight_source.programs.given import GivenProgram, Stablehlo, names_of
from jaxsight_source.stablehlo.program import StablehloProgram, UnreadableProgram
from jaxsight_source.stablehlo.reading import read
from jaxsight_source.text.names import identifier


def of_traced(traced: jax.stages.Traced) -> GivenProgram:
    """Return a traced function with its parameters and pytrees.

    Static arguments are not among its parameters: JAX does not keep their values.
    """
    args, kwargs = stages.arguments(traced)
    program = stages.program(traced)
    count = len(jax.tree.leaves((args, kwargs)))
    name = identifier(traced.fun_name.rpartition(".")[2], "program")
    results = jax.tree.structure(traced.out_info)
    return GivenProgram(program, name, args, kwargs, names_of(program, count), results)


def of_stablehlo(
    artifact: str | bytes,
    *,
    is_exact: bool = True,
    readable: bool = False,
    names: Sequence[str] = (),
    linked: bool = False,
) -> GivenProgram:
    """Return a StableHLO program, as text or bytecode, as a function of the arrays that it takes.

    Args:
        artifact: the program.
        is_exact: whether it is the program itself, and not converted from HLO.
        readable: whether to find calls of library functions.
        names: of its arguments; by default, those in the program.
        linked: whether to record lines of a text in equations.

    Raises:
        UnreadableProgram: it is none, or has an operation that JAX lacks.
    """
    program = _read(artifact, is_exact=is_exact, readable=readable, linked=linked)
    leaves = tuple(avals.leaf(aval) for aval in program.jaxpr.in_avals)
    origin = Stablehlo(artifact, program, tuple(range(len(leaves))), is_exact)
    return GivenProgram(
        program.jaxpr,
        program.name,
        leaves,
        names=names if len(names) == len(leaves) else program.names,
        origin=origin,
        readable=lambda: of_stablehlo(
            artifact, is_exact=is_exact, readable=True, names=names, linked=linked
        ),
    )


def of_lowered(lowered: jax.stages.Lowered, *, readable: bool = False) -> GivenProgram:
    """Return a lowered function with its parameters and pytrees.

    Raises:
        UnreadableProgram: it has an operation that JAX lacks.
    """
    text = lowered.as_text(debug_info=True)
    program = _read(text, readable=readable)
    args, kwargs = stages.arguments(lowered)
    kept = stages.kept(lowered)
    name = program.name
    results = jax.tree.structure(lowered.out_info)
    given = _called(text, program, name, (args, kwargs), kept, results)
    return replace(given, readable=lambda: of_lowered(lowered, readable=True))


def of_exported(exported: jax.export.Exported, *, readable: bool = False) -> GivenProgram:
    """Return an exported function with its parameters and pytrees.

    Raises:
        UnreadableProgram: it has an operation that JAX lacks.
    """
    artifact = exported.mlir_module_serialized
    program = _read(artifact, readable=readable)
    called = jax.tree.unflatten(exported.in_tree, map(avals.leaf, exported.in_avals))
    name = identifier(exported.fun_name.rpartition(".")[2], "program")
    kept = exported.module_kept_var_idx
    given = _called(artifact, program, name, called, kept, exported.out_tree)
    return replace(given, readable=lambda: of_exported(exported, readable=True))


_PLACE = re.compile(r'"-":(\d+):\d+')


def _read(
    artifact: str | bytes, *, is_exact: bool = True, readable: bool, linked: bool = False
) -> StablehloProgram:
    try:
        return read(artifact, readable=readable, linked=linked)
    except UnreadableProgram as error:
        if (place := _PLACE.fullmatch(error.place)) is None:
            raise
        where = f"line {place[1]}" if is_exact else ""  # else of a text that nobody sees
        raise UnreadableProgram(error.why, error.operation, where) from error
    except Exception as error:  # MLIR raises errors of its own for damaged bytecode
        raise UnreadableProgram(" ".join(str(error).split())) from error


def _called(
    artifact: str | bytes,
    program: StablehloProgram,
    name: str,
    called: tuple[tuple[object, ...], dict[str, object]],
    kept: Sequence[int],
    results: jax.tree_util.PyTreeDef,
) -> GivenProgram:
    """Return a program called as its function was.

    Args:
        artifact: the StableHLO.
        program: what was read of it.
        name: the function's.
        called: the arguments and keyword arguments, as pytrees of types.
        kept: the positions of the leaves that the program takes.
        results: their structure.
    """
    types = program.jaxpr.in_avals
    platform = len(types) - len(kept)
    """Of a program for several platforms, the first input says which."""
    leaves, tree = jax.tree.flatten(called)
    names = [""] * len(leaves)
    found = [path or name for path, name in zip(program.paths, program.names, strict=True)]
    for position, aval, known in zip(kept, types[platform:], found[platform:], strict=True):
        leaves[position] = avals.leaf(aval)
        names[position] = known
    args, kwargs = jax.tree.unflatten(tree, leaves)
    first = tuple(avals.leaf(aval) for aval in types[:platform])
    positions = (*range(platform), *(position + platform for position in kept))
    origin = Stablehlo(artifact, program, positions)
    given = GivenProgram(
        program.jaxpr,
        name,
        (*first, *args),
        kwargs,
        [*["platform_index"] * platform, *names],
        results,
        origin,
    )
    if len(positions) == len(leaves) + platform:
        return given
    inside = opened(program.jaxpr)
    with given.types():
        with_unused = jax.make_jaxpr(lambda *xs: evaluate(inside, *(xs[at] for at in positions)))
        return replace(given, jaxpr=with_unused(*first, *leaves))
