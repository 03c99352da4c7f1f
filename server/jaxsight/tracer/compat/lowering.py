"""Lower with paths of equations as locations, instead of lines of files.

This applies to JAX 0.8 to 0.12.

Private API used: `Traced._params` (and `_lojax`, where there is one), `JaxprEqn.replace`,
`Jaxpr.replace`, `source_info_util.SourceInfo` and `new_name_stack`, the option
`jax_traceback_in_locations_limit`, jaxlib's StableHLO dialect, the `compile_args` of a lowering,
`pxla.get_prop_to_input_output`.

Every equation gets the scope `eq[INDEX]`, in an inner jaxpr `eq[NAME.INDEX]` with the name from
`inner`.
JAX joins scopes during lowering (`jaxpr_subcomp` in mlir.py), and XLA during inlining
(`call_inliner.cc`), so that an operation's name has the whole path:
`jit(f)/eq[3]/while/body/eq[body.1]/mul` is `3/body/1`.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
from jax._src import source_info_util
from jax._src.interpreters import pxla
from jax.stages import Traced
from jaxlib import version
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from jaxsight.meshes.compat.distributed import meshes, meshes_of
from jaxsight.meshes.compat.meshes import sizes_of
from jaxsight.timeline import mark
from jaxsight.tracer.compat import absent_devices
from jaxsight.tracer.platforms.compat import seen
from jaxsight.wire.meshes import Distribution, Mesh
from jaxsight_source.compat.inner import replaced
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.lowered.mlir import places_of
from jaxsight_source.compat.staging import open_jaxpr, with_inner

JAXLIB: str = version.__version__

_LEFT_ALONE = frozenset({"pallas_call", "core_map", "mpmd_map", "tpu_custom_call"})
"""Primitives whose inner jaxprs become kernels of their own, not operations of the program."""

_ELIDED = 16
"""Constants with at least this many elements, a long line, are elided in `LoweredText`."""

_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')
_MESH = re.compile(r"sdy\.mesh @[\w.\"-]+ = <\[(.*?)\](?:, device_ids=\[([\d, ]+)\])?>")
_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"=(\d+)')


@dataclass(frozen=True, slots=True)
class Artifact:
    """A lowered program as a portable artifact; `version` is StableHLO's.

    `parameters` are the flat inputs of the function that are parameters of the program.
    """

    platform: str
    bytes: bytes
    version: str
    parameters: tuple[int, ...] = ()
    distribution: Distribution | None = None
    """How it is distributed over devices; `None` for a program for one device."""


@dataclass(frozen=True, slots=True)
class LoweredText:
    """A lowered program as text, with large constants elided.

    `names` are the names of the operations by line, empty if there is none.
    """

    text: str
    names: tuple[str, ...]


def located(traced: Traced, capability: str = "") -> Traced:
    """Return the same traced function with the path of every equation as its only location.

    Pallas kernels are set to a GPU of a compute capability.
    """
    # A copy: the trace is kept for other requests (`job.Traces`), with its lines.
    placed = copy.copy(traced)
    placed._params = {**traced._params, "jaxpr": _Placed(capability).closed(traced.jaxpr, "")}
    # JAX's cached low-level form of the jaxpr: `lower` would use it instead of ours.
    if hasattr(placed, "_lojax"):
        placed._lojax = None
    return placed


def without_first(traced: Traced, count: int) -> Traced:
    """Return the same traced function without its first results; it must not be lowered."""
    if not count:
        return traced
    opened = open_jaxpr(traced.jaxpr)
    info: Any = opened.debug_info
    paths = getattr(info, "result_paths", None)
    if isinstance(paths, tuple):
        # As many as there are results, as JAX asserts (`assert_result_paths`).
        info = info._replace(result_paths=paths[count:])
    shorter = opened.replace(outvars=opened.outvars[count:], debug_info=info)
    jaxpr = with_inner(traced.jaxpr, shorter)
    shortened = copy.copy(traced)
    shortened._params = {**traced._params, "jaxpr": jaxpr}
    return shortened


def artifact(traced: Traced, platform: str, capability: str = "") -> Artifact:
    """Lower a traced function to StableHLO for a platform that need not be present.

    Operations without a stable form (CHLO, shardings, custom calls with typed attributes) stay in
    their own dialect, which another version of jaxlib may be unable to read.

    Args:
        capability: the compute capability of the GPU for Pallas kernels, e.g. `9.0`.

    Raises:
        Exception: any error of JAX's about a program that it cannot lower for the platform.
    """
    lowered = _lower(traced, platform, capability)
    newest = stablehlo.get_current_version()
    # `True` allows other dialects.
    program = stablehlo.serialize_portable_artifact(lowered.module, newest, True)
    mark("serialized")
    return Artifact(platform, program, newest, lowered.parameters, lowered.distribution)


def _distribution(lowered: Any, module: Any, traced: Traced) -> Distribution | None:
    """Return how a module is distributed over devices; `None` for one device.

    An abstract mesh is not in the device assignment: the module is assigned as many devices as it
    has.
    """
    attributes = module.operation.attributes
    replicas, partitions = (
        int(attributes[name].value) if name in attributes else 1
        for name in ("mhlo.num_replicas", "mhlo.num_partitions")
    )
    arguments = lowered._lowering.compile_args
    is_shardy = bool(jax.config.values["jax_use_shardy_partitioner"])
    shardings = (*arguments["in_shardings"], *arguments["out_shardings"])
    # GSPMD's programs have no meshes, only the tiles of shardings.
    if is_shardy:
        written = _written_meshes(module)
    else:
        jax_meshes = itertools.chain(meshes(shardings), meshes_of(traced.jaxpr))
        written = (Mesh(tuple(sizes_of(mesh).items())) for mesh in jax_meshes)
    named = tuple(dict.fromkeys(written))
    largest = max((mesh.size for mesh in named), default=1)
    if replicas * partitions == 1 and largest > 1:
        partitions = largest
        # MLIR makes an attribute in the current context.
        with module.context:
            attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(
                ir.IntegerType.get_signless(32), partitions
            )
    if replicas * partitions == 1:
        return None
    free: Any = pxla.get_prop_to_input_output
    inputs, outputs = free(
        arguments["in_shardings"], arguments["out_shardings"], len(arguments["ordered_effects"])
    )
    return Distribution(
        partitions=partitions,
        replicas=replicas,
        is_shardy=is_shardy,
        free_inputs=tuple(inputs),
        free_outputs=tuple(outputs),
        meshes=named,
    )


def _written_meshes(module: Any) -> Iterator[Mesh]:
    """Yield the meshes of a module for Shardy, without those of no axes."""
    # Only these: the text of a large function takes as long as the rest of lowering.
    texts = (str(op) for op in module.body.operations if op.operation.name == "sdy.mesh")
    for match in map(_MESH.match, texts):
        axes = tuple((name, int(size)) for name, size in _AXIS.findall(match[1] if match else ""))
        if match is not None and axes:
            yield Mesh(axes, devices=tuple(map(int, re.findall(r"\d+", match[2] or ""))))


def text(traced: Traced, platform: str) -> LoweredText:
    """Lower a traced function to StableHLO text; raises the same errors as `artifact`."""
    printed = _lower(traced, platform, "").module.operation.get_asm(
        enable_debug_info=True, large_elements_limit=_ELIDED, pretty_debug_info=False
    )
    lines, aliases = places_of(printed)
    names = (_NAME.match(aliases.get(place, "")) for line, place in lines if line)
    return LoweredText(
        "".join(f"{line}\n" for line, _ in lines if line),
        tuple(name[1] if name is not None else "" for name in names),
    )


def unoptimized(traced: Traced, platform: str) -> str:
    """Lower a traced function to HLO text, as XLA begins with it; errors are as of `artifact`.

    The metadata of an operation holds its name.
    """
    return str(_lower(traced, platform, "").lowered.as_text("hlo", debug_info=True))


class _Module(NamedTuple):
    lowered: Any
    module: Any
    parameters: tuple[int, ...]
    distribution: Distribution | None


def _lower(traced: Traced, platform: str, capability: str) -> _Module:
    with no_lines():
        with absent_devices.clients(), seen.hidden(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about donations, which are shown with the kernels
            placed = located(traced, capability)
            mark("located")
            lowered = placed.lower(lowering_platforms=(platform,))
        parameters = sorted(lowered._lowering.compile_args["kept_var_idx"])
        module: Any = lowered.compiler_ir("stablehlo")
        distribution = _distribution(lowered, module, traced)
        mark("lowered")
        return _Module(lowered, module, tuple(parameters), distribution)


@contextlib.contextmanager
def no_lines() -> Iterator[None]:
    """Lower without places in files in this block, as those of `located` are paths."""
    config: Any = jax.config
    limit = config.values["jax_traceback_in_locations_limit"]
    config.update("jax_traceback_in_locations_limit", 0)
    try:
        yield
    finally:
        config.update("jax_traceback_in_locations_limit", limit)


class _Placed:
    """Jaxprs with located equations.

    Jaxprs that equations share stay shared, so that each becomes a single function of the module.
    """

    def __init__(self, capability: str) -> None:
        self._capability = capability
        self._placed: dict[tuple[int, str], object] = {}

    def closed(self, jaxpr: Any, label: str) -> object:
        # A jaxpr may be at several labels; `traced` keeps it alive, so that its id stays its own.
        key = id(jaxpr), label
        placed = self._placed.get(key)
        if placed is None:
            opened = open_jaxpr(jaxpr)
            equations = [
                self._equation(equation, f"{label}{index}")
                for index, equation in enumerate(opened.eqns)
            ]
            placed = with_inner(jaxpr, opened.replace(eqns=equations))
            self._placed[key] = placed
        return placed

    def _equation(self, equation: Equation, path: str) -> Equation:
        # Without a traceback, the location is the scope alone.
        source = source_info_util.SourceInfo(None, source_info_util.new_name_stack(f"eq[{path}]"))
        params = equation.params
        if equation.primitive.name in _LEFT_ALONE:
            equation = absent_devices.on_gpu(equation, self._capability)
        else:
            params = replaced(params, lambda part: self.closed(part.value, f"{part.name}."))
        return equation.replace(params=params, source_info=source)


def names(traced: Traced) -> tuple[str, ...]:
    """Return JAX's names of the flat inputs of a traced function, e.g. `x`, `params['w']`.

    The result is empty if JAX does not know them.
    """
    argument_names = getattr(open_jaxpr(traced.jaxpr).debug_info, "arg_names", None)
    return tuple(name or "" for name in argument_names) if argument_names is not None else ()


def compiler_options(traced: Traced) -> dict[str, object]:
    """Return the compiler options of the traced `jax.jit`."""
    return dict(traced._params.get("compiler_options_kvs") or ())


def donated(traced: Traced) -> tuple[int, ...]:
    """Return the flat inputs of a traced function whose buffers are donated."""
    flags = traced._params.get("donated_invars", ())
    return tuple(index for index, is_donated in enumerate(flags) if is_donated)
