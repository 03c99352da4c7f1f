"""The default target of a user's own process, and compiles for a target.

A function is traced as the target's platform would.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from jaxsight.targets.own import busy
from jaxsight.targets.own.plugins import plugins
from jaxsight.targets.target import Target
from jaxsight.wire.messages.compiling import Compile, Compiled, NotCompiled
from jaxsight.workers.compilation.default_target import own_target

if TYPE_CHECKING:
    from jax.stages import Traced

    from jaxsight.wire.messages.requests import FakeDevice


class CannotCompile(Exception):
    """The function cannot be lowered or compiled for the target.

    The message has the reason, with a remedy if there is one.
    """


def default() -> Target:
    """Return the default target, for the platforms that JAX is configured to use here."""
    import jax

    from jaxsight.workers.compilation.default_target import default_target

    chosen = jax.config.values["jax_platforms"]
    environ = {**os.environ, **({"JAX_PLATFORMS": chosen} if chosen else {})}
    return default_target(jax.__version__, plugins(), environ)


def compiled(name: str, target: Target, request: Compile) -> Compiled:
    """Compile the program of a request.

    Args:
        name: the function's.
        target: the target.
        request: the program.

    Raises:
        CannotCompile: the compiler is missing, or rejects the program.
    """
    answer = _compile(target, request)
    if isinstance(answer, Compiled):
        return answer
    is_busy = answer.kind == "busy"
    message = busy.explained(answer.message, target) if is_busy else answer.message
    raise CannotCompile(f"{name} cannot be compiled for {target.name}: {message}")


def _compile(target: Target, request: Compile) -> Compiled | NotCompiled:
    if target.is_here:
        from jaxsight.compiler.answer import answer

        return answer(request)
    import jax

    from jaxsight.workers.compilation import environments
    from jaxsight.workers.compilation.environments import DirectCompiler, NoCompiler

    platform, version = target.platform, jax.__version__
    environment = environments.suiting(platform, version)
    if environment is None and platform in plugins():  # then the running Python compiles
        environment = environments.CompilerEnvironment(platform, sys.executable, version)
    if environment is None:
        raise CannotCompile(
            f"the compiler for {target.name} is not installed: run `jaxsight targets install "
            f"{platform}`"
        )
    try:
        with DirectCompiler(environment) as compiler:
            return compiler.compile(request)
    except NoCompiler as error:
        raise CannotCompile(f"{target.name}: {error}") from error


_kept: list[FakeDevice | None] = []
"""The device that the last function saw which asked for it: JAX has cached what it traced."""


def trace(
    fn: Callable[..., object],
    target: Target,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> tuple[Traced, tuple[str, ...]]:
    """Trace a function that sees the target's platform, and return it with notes.

    Globals that modules have set by the platform are those of the process: they were set before.

    Args:
        fn: the function, or one that is traced already.
        target: the target.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    import jax

    from jaxsight.tracer.compat import fake_devices

    if isinstance(fn, jax.stages.Traced):
        return fn, ()

    jitted: Any = fn if hasattr(fn, "trace") else jax.jit(fn)
    device = own_target(target, os.environ).device
    if device is None or (target.is_own and jax.default_backend() == device.family):
        return jitted.trace(*args, **kwargs), ()
    unknown: dict[str, None] = {}
    has_asked = False

    def asked(frame: FrameType, reason: str) -> None:
        nonlocal has_asked
        has_asked = True
        if reason:
            unknown[f"{frame.f_code.co_filename}:{frame.f_lineno} {reason}"] = None

    # JAX caches what it has traced by its context, of which the default device is a part
    # (`include_in_trace_context` in jax/_src/config.py): neither does this see functions that were
    # traced for the CPU, nor does a later call run what is traced here.
    here = jax.config.values["jax_default_device"] or jax.local_devices()[0]
    if _kept and _kept[0] != device:
        jax.clear_caches()  # type: ignore[no-untyped-call]
        _kept.clear()
    with fake_devices.seeing(device, asked), jax.default_device(here):
        traced = jitted.trace(*args, **kwargs)
    if has_asked:
        _kept[:] = [device]
    return traced, tuple(unknown)
