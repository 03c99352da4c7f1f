"""Report each program that JAX lowers and compiles in this process.

This applies to JAX 0.8 to 0.12. JAX's public events (`jax.monitoring`) have times and names, but no
programs.

Private API used:

* `jax._src.interpreters.pxla.lower_sharding_computation`, whose first argument is the jaxpr, third
  the function's name, and fourth the shardings of the arguments; what it returns has the module of
  StableHLO (`stablehlo()`);
* `jax._src.compiler.compile_or_get_cached`, whose first argument is the backend and second the
  module, and which returns the executable, compiled or from the persistent cache;
* an executable's `hlo_modules` and `get_compiled_memory_stats`;
* `cache_miss` of `jax._src.pjit`, the function that a call runs which is not in the cache of `jit`:
  its variables `fun`, `jit_info`, `args` and `kwargs`;
* `register_exclusion` of `jax._src.traceback_util`: the user's tracebacks do not have our frames.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

import jax

from jaxsight.wire.messages.compiling import Memory

_TRANSFORMED = ("jax._src.interpreters.ad", "jax._src.interpreters.batching")
"""Modules that evaluate a function's derivative or batch outside of `jit`."""

_MEMORY = (
    "temp_size_in_bytes",
    "argument_size_in_bytes",
    "output_size_in_bytes",
    "alias_size_in_bytes",
    "generated_code_size_in_bytes",
    "peak_memory_in_bytes",
)
"""Figures of XLA's memory analysis, in the order in which `Memory` has them."""


@dataclass(frozen=True, slots=True)
class JitCall:
    """A call that was not in the cache of `jit`."""

    function: object
    static_positions: tuple[int, ...]
    static_names: tuple[str, ...]
    arguments: tuple[object, ...]
    keywords: dict[str, object] = field(default_factory=dict)


class CompileListener(Protocol):
    """Hears of what JAX does; what it raises is not passed on to JAX."""

    def lowered(self, module: object, lowered: LoweredJaxpr) -> None:
        """Note that a jaxpr was lowered to a module of StableHLO."""

    def compiling(self) -> object:
        """Return what is known before a compile."""

    def compiled(self, before: object, module: object, backend: object, outcome: object) -> None:
        """Note that a module was compiled: an executable, or the exception that was raised."""

    def failed(self, error: Exception) -> None:
        """Note an error of our own."""


@dataclass(frozen=True, slots=True)
class LoweredJaxpr:
    """A jaxpr, and what it was lowered with."""

    jaxpr: Any
    shardings: tuple[str, ...]
    """The shardings of its arguments, empty texts for those that are left open."""


def watch(listener: CompileListener, own_folder: str) -> Callable[[], None]:
    """Report to a listener from now on; tracebacks leave out the files of our own folder.

    Returns:
        What ends it, if nobody else has replaced the same functions of JAX since.
    """
    from jax._src import compiler
    from jax._src.interpreters import pxla

    _exclude(own_folder)
    lower, compile_ = pxla.lower_sharding_computation, compiler.compile_or_get_cached

    def lower_sharding_computation(*args: Any, **kwargs: Any) -> Any:
        computation = lower(*args, **kwargs)
        try:
            listener.lowered(computation.stablehlo(), LoweredJaxpr(args[0], _shardings(args[3])))
        except Exception as error:  # noqa: BLE001 - nothing here may disturb the program
            listener.failed(error)
        return computation

    def compile_or_get_cached(*args: Any, **kwargs: Any) -> Any:
        before = listener.compiling()
        try:
            executable: Any = compile_(*args, **kwargs)
        except Exception as error:
            _quietly(listener, before, args, error)
            raise
        _quietly(listener, before, args, executable)
        return executable

    for own, of in ((lower_sharding_computation, lower), (compile_or_get_cached, compile_)):
        own.__wrapped__ = of  # type: ignore[attr-defined]
    pxla.lower_sharding_computation = lower_sharding_computation
    compiler.compile_or_get_cached = compile_or_get_cached

    def end() -> None:
        if pxla.lower_sharding_computation is lower_sharding_computation:
            pxla.lower_sharding_computation = lower
        if compiler.compile_or_get_cached is compile_or_get_cached:
            compiler.compile_or_get_cached = compile_

    return end


@functools.cache
def _exclude(folder: str) -> None:
    """Have tracebacks leave out the files of a folder."""
    from jax._src import traceback_util

    traceback_util.register_exclusion(folder)


def _quietly(
    listener: CompileListener, before: object, args: Sequence[Any], outcome: object
) -> None:
    try:
        listener.compiled(before, args[1], args[0], outcome)
    except Exception as error:  # noqa: BLE001 - nothing here may disturb the program
        listener.failed(error)


def _shardings(shardings: Sequence[object]) -> tuple[str, ...]:
    return tuple(
        "" if type(each).__name__ == "UnspecifiedValue" else str(each) for each in shardings
    )


def name_of(module: Any) -> str:
    """Return the name of a module of StableHLO."""
    return str(module.operation.attributes["sym_name"]).strip('"')


def equations(jaxpr: Any) -> int:
    """Return the number of equations of a jaxpr, with those inside of others."""
    count, open_ = 0, [getattr(jaxpr, "jaxpr", jaxpr)]
    while open_:
        for equation in open_.pop().eqns:
            count += 1
            for value in equation.params.values():
                for each in value if isinstance(value, tuple | list) else (value,):
                    inner = getattr(each, "jaxpr", each)
                    if hasattr(inner, "eqns"):
                        open_.append(inner)
    return count


def optimized_hlo(executable: Any) -> str:
    """Return the optimized HLO of an executable; empty if the backend does not keep it."""
    modules = executable.hlo_modules()
    return str(modules[0].to_string()) if modules else ""


def memory(executable: Any) -> Memory:
    """Return the figures of XLA's memory analysis; those that it has."""
    stats = executable.get_compiled_memory_stats()
    figures: list[Any] = [int(getattr(stats, name, -1)) for name in _MEMORY]
    return Memory(*figures)


def devices(backend: Any, executable: Any) -> tuple[str, str, int, int]:
    """Return the platform of a program, its devices in this process, and the process's index."""
    own = executable.local_devices()
    kind = str(own[0].device_kind) if own else ""
    return str(backend.platform), kind, len(own), int(backend.process_index())


def call(frame: FrameType | None) -> JitCall | None:
    """Return the call of `jit` that a frame belongs to; `None` if there is none."""
    for each in outwards(frame):
        if each.f_code.co_name == "cache_miss" and each.f_globals["__name__"] == "jax._src.pjit":
            known = each.f_locals
            info = known["jit_info"]
            return JitCall(
                known["fun"],
                tuple(info.static_argnums),
                tuple(info.static_argnames),
                known["args"],
                known["kwargs"],
            )
    return None


def is_transformed(frames: Iterator[FrameType]) -> bool:
    """Return whether a derivative or a batch is evaluated by one of the frames."""
    return any(frame.f_globals.get("__name__", "") in _TRANSFORMED for frame in frames)


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame, and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def caller() -> FrameType:
    """Return the frame of JAX that compiles."""
    return next(each for each in outwards(sys._getframe(1)) if _is_jax(each))


def _is_jax(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("jax.")


def context() -> tuple[tuple[str, str], ...]:
    """Return the settings of JAX that decide what a trace is, as they are in this thread."""
    return tuple((name, str(getattr(jax.config, name, ""))) for name in _CONTEXT)


_CONTEXT = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_device",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_softmax_custom_jvp",
)
"""Settings in the key of `jit`'s cache (`trace_context` in `jax/_src/config.py`)."""


def listen(durations: Callable[..., None], events: Callable[..., None]) -> None:
    """Report JAX's public events to two functions."""
    jax.monitoring.register_event_duration_secs_listener(durations)
    jax.monitoring.register_event_listener(events)


# The functions that jaxprs were traced from. Applies to JAX 0.8 to 0.12.
#
# Private API used: a jaxpr's `debug_info`.

_DEFINED = re.compile(r"(?P<name>.*?) at (?P<file>.*):(?P<line>\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Definition:
    """Where the function of a jaxpr is defined, and what it takes and returns."""

    name: str
    file: str = ""
    line: int = 0
    arguments: tuple[tuple[str, str], ...] = ()
    """Names and types of its arguments."""
    results: tuple[str, ...] = ()


def definition(jaxpr: Any) -> Definition:
    """Return what a jaxpr says of its function."""
    opened = getattr(jaxpr, "jaxpr", jaxpr)
    info = opened.debug_info
    match = _DEFINED.fullmatch(info.func_src_info or "")
    arguments = [variable.aval for variable in opened.invars]
    names = info.arg_names or ()
    if len(names) != len(arguments):
        names = [""] * len(arguments)
    results = tuple(_type(getattr(each, "aval", None)) for each in opened.outvars)
    types = map(_type, arguments)
    return Definition(
        match["name"] if match else str(info.func_src_info or ""),
        match["file"] if match else "",
        int(match["line"]) if match else 0,
        tuple((str(name or ""), type_) for name, type_ in zip(names, types, strict=True)),
        results,
    )


def _type(aval: Any) -> str:
    """Return a type as JAX writes it, `f32[8]`, with a mark if it is weak: `f32[]*`."""
    try:
        text = str(aval.str_short(short_dtypes=True))
    except (AttributeError, TypeError):
        return str(aval)
    return f"{text}*" if getattr(aval, "weak_type", False) else text
