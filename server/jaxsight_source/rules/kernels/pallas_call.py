"""A `pallas_call`: the kernel as a function of references, its grid and its `BlockSpec`s."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from jaxsight_source.compat import pallas
from jaxsight_source.compat.jaxpr_types import Aval, Equation, Params
from jaxsight_source.compat.staging import Program
from jaxsight_source.equations.registry import STRUCTURES, passed
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import ELLIPSIS, NONE, call, dict_, lambda_, list_, tuple_
from jaxsight_source.text.names import identifier
from jaxsight_source.text.statements import define, effect, return_
from jaxsight_source.values.public_names import at_hand, path_of, public_path
from jaxsight_source.values.spelling import dtype, value
from jaxsight_source.writing.scope import Scope
from jaxsight_source.writing.variables import argument_bases, nested_results, sequence, with_parts

PALLAS = "jax.experimental.pallas"
TPU = "jax.experimental.pallas.tpu"
TRITON = "jax.experimental.pallas.triton"


@STRUCTURES("pallas_call")
def pallas_call(scope: Scope, equation: Equation) -> Proved:
    """Write a kernel and its call; the caller passes one that no public function expresses."""
    start = len(scope.body)
    _import_public_modules()
    try:
        return _written(scope, equation, pallas.kernel_call(equation))
    except (Unsourceable, Unwritable) as error:
        del scope.body[start:]
        return scope.passed_in(equation, getattr(error, "why", str(error)))


def _import_public_modules() -> None:
    """Import the modules of the public names, where a program was read that was traced elsewhere.

    What a kernel holds has the private module of its compiler imported.
    """
    importlib.import_module(PALLAS)
    for compiler, module in (("mosaic", TPU), ("triton", TRITON)):
        if f"jax._src.pallas.{compiler}.core" in sys.modules:
            importlib.import_module(module)


def _written(scope: Scope, equation: Equation, kernel: pallas.KernelCall) -> Proved:
    params = equation.params
    if params.get("mesh") is not None:
        raise Unsourceable("pallas_call", "it runs over a mesh of cores")
    mapped: list[list[int | None]] = []
    copies = 1
    while kernel.batched:
        copies *= kernel.grid[0] or 1
        kernel, axes = unbatched(kernel)
        mapped.append(axes)
    operands = [scope.operand(atom) for atom in equation.invars]
    sizes = iter(operands)
    grid = [next(sizes) if size is None else value(size) for size in kernel.grid]
    named: list[tuple[object, int]] = []
    if kernel.grid_names is not None:
        names = kernel.grid_names[len(mapped) :]  # `vmap` adds axes without names
        grid = [tuple_((value(name), each)) for name, each in zip(names, grid, strict=True)]
        named = [(name, size or 2) for name, size in zip(names, kernel.grid, strict=True)]
    laid_out = _layout(scope, kernel, grid)
    if kernel.prefetched:
        spec = call(
            at_hand(TPU, "PrefetchScalarGridSpec"),
            num_scalar_prefetch=value(kernel.prefetched),
            **laid_out,
        )
        laid_out = {"grid_spec": spec}
    structs = [_out_shape(aval, len(mapped)) for aval in params["out_avals"]]
    made = call(
        at_hand(PALLAS, "pallas_call"),
        _kernel(scope, kernel, named),
        sequence(structs),
        **laid_out,
        **_options(params, copies),
    )
    sized = [None for size in kernel.grid if size is None]
    for axes in reversed(mapped):
        all_axes = [*sized, *axes]
        given = {} if all(axis == 0 for axis in all_axes) else {"in_axes": value(tuple(all_axes))}
        made = call("jax.vmap", made, **given)
    return Proved(call(scope.assigned("run", made), *sizes), nested_results(len(structs)))


def _layout(
    scope: Scope, kernel: pallas.KernelCall, grid: Sequence[ast.expr]
) -> dict[str, ast.expr]:
    """Return the grid, the blocks of all arrays, and the scratch memory."""
    found: dict[str, ast.expr] = {}
    if grid:
        found["grid"] = tuple_(grid)
    if any(map(_is_cut, kernel.inputs)):
        found["in_specs"] = list_(_block_spec(scope, each) for each in kernel.inputs)
    if any(map(_is_cut, kernel.outputs)):
        found["out_specs"] = sequence([_block_spec(scope, each) for each in kernel.outputs])
    if kernel.scratch:
        found["scratch_shapes"] = list_(map(scratch, kernel.scratch))
    return found


def _is_default(block: pallas.KernelBlock) -> bool:
    """Return whether a block is the whole array, by an index map that returns Python's zeros."""
    return block.is_whole and all(
        atom.aval.dtype == jnp.result_type(int) for atom in block.index_map.jaxpr.outvars
    )


def _is_cut(block: pallas.KernelBlock) -> bool:
    """Return whether a block has to be specified."""
    return not (
        _is_default(block)
        and block.pipeline_mode is None
        and pallas.memory_space(block.reference) is None
    )


def _block_spec(scope: Scope, block: pallas.KernelBlock) -> ast.expr:
    if block.transforms:
        raise Unsourceable("pallas_call", "a block has a layout of its own")
    positional: list[ast.expr] = []
    if not _is_default(block):
        sizes = tuple_(map(_dimension, block.dimensions))
        positional = [sizes, _index_map(scope, block.index_map)]
    named: dict[str, ast.expr] = {}
    if (space := pallas.memory_space(block.reference)) is not None:
        named["memory_space"] = path_of(space, space)
    if block.pipeline_mode is not None:
        named["pipeline_mode"] = _changed(block.pipeline_mode, keep=1)
    return call(at_hand(PALLAS, "BlockSpec"), *positional, **named)


def _dimension(dimension: Any) -> ast.expr:
    match type(dimension).__name__:
        case "Blocked":
            return value(dimension.block_size)
        case "Squeezed":
            return NONE
        case _:
            return _changed(dimension, keep=1)


def _index_map(scope: Scope, program: Program) -> ast.expr:
    """Return a lambda, or the name of a function if it computes more than one expression."""
    inner = scope.inner()
    names = inner.parameters(program.jaxpr.invars, argument_bases(program, "i"))
    results = tuple_(inner.program(program))
    if not inner.body:
        return lambda_(tuple(names), results)
    name = scope.names.fresh("index_map")
    scope.body.append(define(name, tuple(names), [*inner.body, return_(results)]))
    return ast.Name(name)


def scratch(aval: Aval) -> ast.expr:
    """Return the type of scratch memory: `pltpu.VMEM((8, 128), jnp.float32)`."""
    shape = tuple(aval.shape)
    if (kind := pallas.semaphore(aval)) is not None:
        path = ast.Attribute(at_hand(TPU, "SemaphoreType"), kind)
        return call(path, value(shape)) if shape else path
    space = getattr(aval, "memory_space", None)
    if space is None:
        raise Unsourceable("pallas_call", "its scratch memory is in no memory space")
    return call(path_of(space, space), value(shape), dtype(aval.dtype))


def _out_shape(aval: Aval, mapped: int) -> ast.expr:
    """Return the type of a result without its `mapped` first axes."""
    space = pallas.memory_space(aval)
    shape = value(tuple(aval.shape[mapped:]))
    if space is not None:
        return call(path_of(space, space), shape, dtype(aval.dtype))
    return call("jax.ShapeDtypeStruct", shape, dtype(aval.dtype))


def _options(params: Params, copies: int) -> dict[str, ast.expr]:
    """Return the other options; the costs are those of one of `copies` that `vmap` made."""
    options: dict[str, ast.expr] = {}
    if params["input_output_aliases"]:
        pairs = params["input_output_aliases"]
        options["input_output_aliases"] = dict_((value(i), value(o)) for i, o in pairs)
    compiler = params.get("compiler_params")
    # Before JAX 0.9, by the compiler's name.
    if compiler and not dataclasses.is_dataclass(compiler):
        (compiler,) = compiler.values()
    if compiler:
        options["compiler_params"] = _changed(compiler)
    if params.get("cost_estimate") is not None:
        costs = params["cost_estimate"]
        if copies > 1:
            names = ("flops", "bytes_accessed", "transcendentals")
            own = {each: getattr(costs, each) // copies for each in names}
            costs = dataclasses.replace(costs, **own)
        options["cost_estimate"] = _changed(costs)
    interpret = params.get("interpret")
    if interpret:
        is_switch = isinstance(interpret, bool)
        options["interpret"] = value(interpret) if is_switch else _changed(interpret)
    options |= passed(params, "name")
    if params.get("metadata"):
        pairs = params["metadata"].items()
        options["metadata"] = dict_((value(key), value(part)) for key, part in pairs)
    return options | passed(params, "backend")


def _changed(subject: Any, keep: int = 0) -> ast.expr:
    """Return an object of a dataclass, without the fields that have their default.

    The first `keep` fields are passed by position.
    """
    cls = type(subject)
    fields = dataclasses.fields(subject)
    positional = [_field(getattr(subject, field.name)) for field in fields[:keep]]
    named: list[ast.keyword] = []
    for field in fields[keep:]:
        current, default = getattr(subject, field.name), field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if type(current) is not type(default) or current != default:
            named.append(ast.keyword(field.name, _field(current)))
    return call(path_of(cls, subject), *positional, *named)


def _field(part: Any) -> ast.expr:
    if isinstance(part, Mapping):
        return dict_((value(key), value(entry)) for key, entry in part.items())
    if isinstance(part, tuple) and type(part) is tuple:
        return tuple_(map(_field, part))
    path = public_path(part) if callable(part) else None
    return path if path is not None else value(part)


def _kernel(
    scope: Scope, kernel: pallas.KernelCall, axes: Sequence[tuple[object, int]]
) -> ast.expr:
    """Return the name of the kernel, a function at the top of the module.

    Args:
        scope: where it is called.
        kernel: the kernel.
        axes: the names of its grid's axes and their sizes, any for one that is an operand.
    """
    prover = scope.writer.proofs.prover

    def build(name: str) -> list[ast.stmt]:
        inner = Scope.top(scope.writer)
        jaxpr = kernel.body.jaxpr
        names = inner.parameters(jaxpr.invars, _bases(kernel))
        around = prover.axes
        prover.axes = [*around, *axes]
        try:
            inner.program(kernel.body)
        finally:
            prover.axes = around
        return [define(name, tuple(names), inner.body or [effect(ELLIPSIS)])]

    base = identifier(kernel.name, "kernel")
    key = ("kernel", id(kernel.body.jaxpr))
    return scope.writer.functions.shared(key, kernel.body, base, build)


def _bases(kernel: pallas.KernelCall) -> list[str]:
    counts = {
        "scalar_ref": kernel.prefetched,
        "x_ref": len(kernel.inputs),
        "out_ref": len(kernel.outputs),
        "scratch_ref": len(kernel.scratch),
    }
    fallbacks = [base for base, count in counts.items() for _ in range(count)]
    return argument_bases(kernel.body, fallbacks)


def unbatched(kernel: pallas.KernelCall) -> tuple[pallas.KernelCall, list[int | None]]:
    """Return a kernel without the first axis of its grid, and the mapped axes of its inputs.

    Raises:
        Unsourceable: if that axis is no axis of `vmap`.
    """
    if kernel.batched[0] != 0 or kernel.grid[0] is None:
        raise Unsourceable("pallas_call", "vmap added an axis inside its grid")
    inputs, outputs = (
        [_unmapped(each) for each in part] for part in (kernel.inputs, kernel.outputs)
    )
    if any(axis != 0 for _, axis in outputs):
        raise Unsourceable("pallas_call", "vmap added an axis other than the results' first")
    inside = dataclasses.replace(
        kernel,
        grid=kernel.grid[1:],
        batched=tuple(axis - 1 for axis in kernel.batched[1:]),
        inputs=tuple(block for block, _ in inputs),
        outputs=tuple(block for block, _ in outputs),
    )
    return inside, [None] * kernel.prefetched + [axis for _, axis in inputs]


def _unmapped(block: pallas.KernelBlock) -> tuple[pallas.KernelBlock, int | None]:
    """Return a block without the mapped axis, and this axis; None if it is not mapped."""
    first, *others = block.index_map.jaxpr.invars
    results = list(block.index_map.jaxpr.outvars)
    axis = next((axis for axis, atom in enumerate(results) if atom is first), None)
    if axis is None:
        index_map = with_parts(block.index_map, invars=others)
        return dataclasses.replace(block, index_map=index_map), None
    if type(block.dimensions[axis]).__name__ != "Squeezed":
        raise Unsourceable("pallas_call", "vmap added an axis that the kernel sees")
    array: Any = block.array
    without = {
        "index_map": with_parts(block.index_map, invars=others, outvars=_left_out(results, axis)),
        "dimensions": _left_out(block.dimensions, axis),
        "array": array.update(shape=_left_out(array.shape, axis)),
    }
    return dataclasses.replace(block, **without), axis


def _left_out(items: Any, position: int) -> tuple[Any, ...]:
    return (*items[:position], *items[position + 1 :])
