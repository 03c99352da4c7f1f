"""Pallas kernels with other sizes of arrays, blocks and grids. Applies to JAX 0.8 to 0.12.

`pl.pallas_call` and `BlockSpec` are public; the parameters of `pallas_call`, `get` and `swap` are
not. Kernels with scratch memory, prefetched scalars, named grids or axes of `vmap` are refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl

from jaxsight_source.compat import avals
from jaxsight_source.compat.equations import argument_names
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.pallas import KernelBlock, KernelCall, kernel_call, memory_space
from jaxsight_source.compat.parameters import AxisSlice, Indexed, unflattened, views
from jaxsight_source.compat.staging import evaluate, with_parameters


def call_kernel(
    equation: Equation,
    body: Callable[..., Sequence[object]],
    sizes: Mapping[int, int],
    operands: Sequence[object],
) -> list[Any]:
    """Return the results of a `pallas_call` with other sizes, without operands it does not read.

    A size of the grid that is the number of blocks along an axis follows the axis.

    Raises:
        NotImplementedError: it has parts that cannot be called again.
    """
    call, params = kernel_call(equation), equation.params
    if call.scratch or call.prefetched or call.batched or call.grid_names or params.get("mesh"):
        raise NotImplementedError("scratch memory, prefetched scalars, or named axes")
    aliases = dict(params.get("input_output_aliases") or ())
    read = {id(atom) for each in call.body.jaxpr.eqns for atom in each.invars}
    references = call.body.jaxpr.invars
    kept = [i for i in range(len(call.inputs)) if aliases or id(references[i]) in read]
    positions = [*kept, *range(len(call.inputs), len(references))]

    def kernel(*given: object) -> None:
        places: list[object] = [None] * len(references)
        for position, reference in zip(positions, given, strict=True):
            places[position] = reference
        body(*places)

    kernel.__name__ = call.name if call.name.isidentifier() else "kernel"
    names = argument_names(call.body)
    if len(names) == len(references):
        with contextlib.suppress(ValueError):  # names of parts, such as `x.y`
            with_parameters(kernel, [names[position] for position in positions])
    resized = [_spec(block, sizes) for block in call.blocks]
    function = pl.pallas_call(
        kernel,
        [avals.struct(_mapped(b.array.shape, sizes), b.array.dtype) for b in call.outputs],
        grid=_grid(call, sizes),
        in_specs=[resized[index] for index in kept],
        out_specs=resized[len(call.inputs) :],
        input_output_aliases=aliases,
        interpret=params["interpret"],
        compiler_params=params.get("compiler_params"),
        name=params.get("name"),
    )
    return list(function(*(operands[index] for index in kept)))


def _mapped(shape: Sequence[int], sizes: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(sizes.get(size, size) for size in shape)


def _spec(block: KernelBlock, sizes: Mapping[int, int]) -> pl.BlockSpec:
    dimensions: list[int | None] = []
    for dimension, size in zip(block.dimensions, block.sizes, strict=True):
        if (name := type(dimension).__name__) not in ("Blocked", "Squeezed"):
            raise NotImplementedError(name)
        dimensions.append(sizes.get(size, size) if name == "Blocked" else None)

    def index_map(*position: object) -> tuple[object, ...]:
        return tuple(evaluate(block.index_map, *position))

    with_parameters(index_map, "ijklmnop"[: len(block.index_map.jaxpr.invars)])
    return pl.BlockSpec(
        tuple(dimensions),
        index_map,
        memory_space=memory_space(block.reference),
        pipeline_mode=block.pipeline_mode,
    )


def _grid(call: KernelCall, sizes: Mapping[int, int]) -> tuple[int, ...]:
    """Return the new grid.

    Raises:
        NotImplementedError: the arrays do not agree about it.
    """
    grid: list[int] = []
    for axis, count in enumerate(call.grid):
        if count is None:
            raise NotImplementedError("a grid of a size that is an operand")
        needed: set[int] = set()
        for block in call.blocks:
            program = block.index_map.jaxpr
            for index, whole, part in zip(
                program.outvars, block.array.shape, block.sizes, strict=True
            ):
                if index is program.invars[axis] and -(-whole // part) == count:
                    needed.add(-(-sizes.get(whole, whole) // sizes.get(part, part)))
        if len(needed) > 1:
            raise NotImplementedError("arrays with different numbers of blocks")
        grid.append(next(iter(needed), sizes.get(count, count)))
    return tuple(grid)


def access(equation: Equation, sizes: Mapping[int, int], operands: Sequence[Any]) -> list[Any]:
    """Return the results of a `get` or `swap` of a reference with other sizes.

    Raises:
        NotImplementedError: it is of another view than an indexed one.
    """
    is_read = equation.primitive.name == "get"
    reference, leaves = operands[0], operands[1 if is_read else 2 :]
    transforms = views(unflattened(equation.params["tree"], leaves))
    index: Any = ...
    match transforms:
        case [Indexed(indices)]:
            whole = all(isinstance(each, AxisSlice) and each.is_whole for each in indices)
            index = ... if whole else tuple(_index(each, sizes) for each in indices)
        case []:
            pass
        case _:
            raise NotImplementedError("views of references")
    return [reference[index] if is_read else jax.ref.swap(reference, index, operands[1])]


def _index(part: Any, sizes: Mapping[int, int]) -> object:
    if not isinstance(part, AxisSlice):
        return part
    start: Any = part.start
    size: Any = part.size
    return pl.ds(start, sizes.get(size, size), part.stride)
