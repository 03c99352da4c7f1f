"""Trace a function in the user's process as the target's platform would."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from jaxsight.workers.compilation.default_target import own_target

if TYPE_CHECKING:
    from jax.stages import Traced

    from jaxsight.targets.target import Target
    from jaxsight.wire.messages.requests import SeenDevice

_kept: list[SeenDevice | None] = []
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

    from jaxsight.tracer.platforms.compat import seen

    if isinstance(fn, jax.stages.Traced):
        return fn, ()

    jitted: Any = fn if hasattr(fn, "trace") else jax.jit(fn)
    device = own_target(target, os.environ).seen
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
    with seen.seeing(device, asked), jax.default_device(here):
        traced = jitted.trace(*args, **kwargs)
    if has_asked:
        _kept[:] = [device]
    return traced, tuple(unknown)
