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

For a device that is not present, there is more private API of callbacks, and of Pallas kernels for
GPUs:

* `mlir.ModuleContext.get_backend`. The lowering rule of callbacks (`callback.emit_python_callback`)
  calls it for the client of the platform, and it raises if the process has none. The rule for GPUs
  does not use the client; that for TPUs registers the callback with it, which only a run needs.
* `JaxprEqn.ctx`, the context that an equation was traced in. `jaxpr_subcomp` enters it to lower the
  equation, so a mesh that is set around the lowering has no effect. Triton's rule takes the compute
  capability from the `AbstractDevice` of the context's mesh since JAX 0.12
  (`pallas/triton/gpu_info.py`), Mosaic's since 0.10 (`experimental/mosaic/gpu`, `infer_arch`).
  0.8 and 0.9 do not use it.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
from jax._src import source_info_util
from jax._src.interpreters import mlir, pxla
from jax.stages import Traced
from jaxlib import version
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from jaxsight.meshes.compat.meshes import meshes_in, meshes_of, sizes_of
from jaxsight.timeline import mark
from jaxsight.tracer.compat import fake_devices
from jaxsight.tracer.compat.replacing import replaced
from jaxsight.wire.meshes import Distribution, Mesh
from jaxsight_source.compat import inner
from jaxsight_source.compat.equations import argument_names
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.lowered.mlir import places_of
from jaxsight_source.compat.staging import open_jaxpr, opened, with_inner

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
    placed = _with_jaxpr(traced, _Placed(capability).closed(traced.jaxpr, ""))
    # JAX's cached low-level form of the jaxpr: `lower` would use it instead of ours.
    if hasattr(placed, "_lojax"):
        placed._lojax = None
    return placed


def without_first(traced: Traced, count: int) -> Traced:
    """Return the same traced function without its first results; it must not be lowered."""
    if not count:
        return traced
    inside = open_jaxpr(traced.jaxpr)
    info: Any = inside.debug_info
    paths = getattr(info, "result_paths", None)
    if isinstance(paths, tuple):
        # As many as there are results, as JAX asserts (`assert_result_paths`).
        info = info._replace(result_paths=paths[count:])
    shorter = inside.replace(outvars=inside.outvars[count:], debug_info=info)
    return _with_jaxpr(traced, with_inner(traced.jaxpr, shorter))


def _with_jaxpr(traced: Traced, jaxpr: object) -> Traced:
    # A copy: the trace is kept for other requests (`kept_traces`), with its lines.
    changed = copy.copy(traced)
    changed._params = {**traced._params, "jaxpr": jaxpr}
    return changed


def artifact(traced: Traced, platform: str, capability: str = "") -> Artifact:
    """Lower a traced function to StableHLO for a platform that need not be present.

    Operations without a stable form (CHLO, shardings, custom calls with typed attributes) stay in
    their own dialect, which another version of jaxlib may be unable to read.

    Args:
        capability: the compute capability of the GPU for Pallas kernels, e.g. `9.0`.

    Raises:
        Exception: any error of JAX's about a program that it cannot lower for the platform.
    """
    lowered, module, distribution = _lower(traced, platform, capability)
    newest = stablehlo.get_current_version()
    # `True` allows other dialects.
    program = stablehlo.serialize_portable_artifact(module, newest, True)
    mark("serialized")
    parameters = sorted(lowered._lowering.compile_args["kept_var_idx"])
    return Artifact(platform, program, newest, tuple(parameters), distribution)


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
        jax_meshes = itertools.chain(meshes_in(shardings), meshes_of(traced.jaxpr))
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
    _, module, _ = _lower(traced, platform)
    printed = module.operation.get_asm(
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
    lowered, _, _ = _lower(traced, platform)
    return str(lowered.as_text("hlo", debug_info=True))


def _lower(
    traced: Traced, platform: str, capability: str = ""
) -> tuple[Any, Any, Distribution | None]:
    """Return a lowering, its StableHLO module, and how that is distributed."""
    with no_lines():
        with _clients(), fake_devices.hidden(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about donations, which are shown with the kernels
            placed = located(traced, capability)
            mark("located")
            lowered = placed.lower(lowering_platforms=(platform,))
        module: Any = lowered.compiler_ir("stablehlo")
        distribution = _distribution(lowered, module, traced)
        mark("lowered")
        return lowered, module, distribution


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
            inside = open_jaxpr(jaxpr)
            equations = [
                self._equation(equation, f"{label}{index}")
                for index, equation in enumerate(inside.eqns)
            ]
            placed = self._placed[key] = with_inner(jaxpr, inside.replace(eqns=equations))
        return placed

    def _equation(self, equation: Equation, path: str) -> Equation:
        # Without a traceback, the location is the scope alone.
        source = source_info_util.SourceInfo(None, source_info_util.new_name_stack(f"eq[{path}]"))
        params = equation.params
        if equation.primitive.name in _LEFT_ALONE:
            equation = _on_gpu(equation, self._capability)
        else:
            params = inner.replaced(params, lambda part: self.closed(part.value, f"{part.name}."))
        return equation.replace(params=params, source_info=source)


def names(traced: Traced) -> tuple[str, ...]:
    """Return JAX's names of the flat inputs of a traced function, e.g. `x`, `params['w']`."""
    return argument_names(opened(traced.jaxpr))


def compiler_options(traced: Traced) -> dict[str, object]:
    """Return the compiler options of the traced `jax.jit`."""
    return dict(traced._params.get("compiler_options_kvs") or ())


def donated(traced: Traced) -> tuple[int, ...]:
    """Return the flat inputs of a traced function whose buffers are donated."""
    flags = traced._params.get("donated_invars", ())
    return tuple(index for index, is_donated in enumerate(flags) if is_donated)


_KINDS = {
    "7.0": "Tesla T4",  # JAX knows no GPU with 7.0; XLA rejects Triton's kernels for both
    "7.5": "Tesla T4",
    "8.0": "NVIDIA A100",
    "8.6": "NVIDIA A10",
    "8.9": "NVIDIA L4",
    "9.0": "NVIDIA H100",
    "10.0": "NVIDIA B200",
    "10.3": "NVIDIA B300",
    "12.0": "NVIDIA RTX PRO 6000",
}
"""A GPU in `gpu_info.GpuVersion` for each compute capability; only the capability is used."""


class _Client:
    """A substitute for the client of a platform that this process does not have."""

    def make_python_callback_from_host_send_and_recv(self, *_args: object) -> object:
        """Register nothing: the program is compiled elsewhere and never run."""
        return object()


@contextlib.contextmanager
def _clients() -> Iterator[None]:
    """Let lowering rules that need the platform's client work without one; not thread-safe."""
    real: Any = mlir.ModuleContext.get_backend

    def get_backend(self: Any, optional: bool = False) -> object:
        try:
            return real(self, optional)
        except (RuntimeError, ValueError):
            # The process has no such platform, or the function's inputs are on another one.
            # For several platforms, JAX itself gives no client.
            if optional or len(self.platforms) > 1:
                raise
            return _Client()

    # On the class, as JAX makes a `ModuleContext` for each lowering.
    with replaced((mlir.ModuleContext, "get_backend", get_backend)):
        yield


def _on_gpu(equation: Equation, capability: str) -> Equation:
    """Return the equation as if traced for a GPU of a compute capability, e.g. `9.0`.

    An unknown capability leaves it unchanged.
    """
    device = _gpu(capability)
    if device is None:
        return equation
    context = equation.ctx
    with context.manager:
        current: Any = jax.sharding.get_abstract_mesh()
        mesh = current.update(abstract_device=device)
        with jax.sharding.use_abstract_mesh(mesh):
            # JAX builds this context from the thread's current settings.
            return equation.replace(ctx=type(context)())


@cache
def _gpu(capability: str) -> object:
    kind = jax.sharding.AbstractDevice
    fields = {field.name for field in dataclasses.fields(kind)}
    if capability not in _KINDS or "platform" not in fields:
        return None  # 0.8 and 0.9
    # Mosaic reads the attribute as that of a device; `AbstractDevice` has no such field.
    described = dataclasses.make_dataclass(
        "AbstractGpu", [("compute_capability", str, "")], bases=(kind,), frozen=True
    )
    return described(_KINDS[capability], None, "gpu", capability)
