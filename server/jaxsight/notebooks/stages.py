"""Stages of JAX as arguments of `show`: traced, lowered and compiled functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jaxsight.figures.figures import Figures
from jaxsight.library.kernels import Kernels
from jaxsight.library.live_places import LivePlaces, place_of
from jaxsight.runs.compiled_hlo import numbered
from jaxsight.text.inert import clause
from jaxsight.wire.messages.compiling import ON_DEVICE, Compile, Compiled
from jaxsight.wire.messages.replies import Equation, Lowered
from jaxsight_source.errors import NotAProgram

Call = tuple[Callable[..., object], tuple[object, ...], dict[str, object]]


class CannotShow(TypeError):
    """What was passed is no function that has kernels; the message is one clause."""


def call(fn: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Call:
    """Return the call of a function, or of the program that a stage or a jaxpr is.

    Raises:
        CannotShow: it is neither.
    """
    import jax

    if isinstance(fn, jax.stages.Traced):
        return fn, (), {}  # `kernels_on` takes it as it is
    if callable(fn) and not hasattr(fn, "eqns"):
        return fn, args, kwargs
    from jaxsight_source import program_of

    try:
        given = program_of(fn)  # type: ignore[arg-type]
    except NotAProgram:
        raise CannotShow(f"expected a function, got {clause(repr(fn), 60)}") from None
    bound = given.call()
    return bound.function, bound.bound.args, bound.bound.kwargs


def of_compiled(fn: object, target: str | None) -> Kernels | None:
    """Return the kernels of a compiled function, which are known from its HLO; `None` for others.

    Raises:
        CannotShow: another target is asked for than it is compiled for.
    """
    import jax

    if isinstance(fn, jax.stages.Lowered) and target in (None, jax.default_backend()):
        fn = fn.compile()
    if not isinstance(fn, jax.stages.Compiled):
        return None
    from jaxsight.compiler.compat.xla import memory_of
    from jaxsight.compiler.hlo import read
    from jaxsight.targets.target import parse, recognized

    executable: Any = fn.runtime_executable()
    device = executable.local_devices()[0]
    version = str(getattr(device.client, "platform_version", ""))
    gpu = "rocm" if "rocm" in version.lower() else "cuda"
    own = parse({"gpu": gpu}.get(device.platform, device.platform))
    if target is not None and parse(target).name != own.name:
        raise CannotShow(f"it is compiled for {own.name}; pass the function for another target")
    hlo, written = numbered(fn.as_text() or "")
    graph = read(hlo, platform=own.platform, capability=own.capability)
    memory = memory_of(executable)
    kind = "" if own.platform == "cpu" else device.device_kind
    devices = len(executable.local_devices())
    answer = Compiled(
        0, own.name, ON_DEVICE, graph, memory, hlo, 0.0, device_kind=kind, devices=devices
    )
    places = {path: place_of(at) for path, (_, at) in written.items() if at is not None}
    equations = (Equation(path, operation) for path, (operation, _) in written.items())
    lowered = Lowered(0, own.platform, "", Compile(0, own.name, ""), equations=tuple(equations))
    figures = Figures(recognized(own, kind), answer, lowered, places=LivePlaces(places))
    return Kernels(_NAME.sub("", graph.module), figures)


_NAME = re.compile(r"^jit_|^pmap_")
