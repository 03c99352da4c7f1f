"""Report calls of jitted functions that JAX compiles nothing for, as their programs are cached.

This applies to JAX 0.8 to 0.12, which have no public API for it.

Private API used: `jax._src.api._post_hook_state`, a setting that has the function which C++ calls
after each call whose program is in its cache, with the jitted function, its arguments and results.
JAX has one of its own there, for `jax_debug_nans`. Calls that are batched or differentiated outside
of `jit`, calls of `jax.stages.Compiled`, and those of functions with ordered effects are not
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Noted = Callable[[object, tuple[object, ...], dict[str, object]], None]
"""Is called with a jitted function and the arguments of a call."""


def watch(note: Noted, failed: Callable[[Exception], None]) -> Callable[[], None]:
    """Report the calls of this thread from now on; what `note` raises goes to `failed`.

    Returns:
        What ends it.
    """
    from jax._src import api

    state: Any = api._post_hook_state

    def called(
        function: object, args: Iterable[object], kwargs: Mapping[str, object], results: object
    ) -> None:
        try:
            note(function, tuple(args), dict(kwargs))
        except Exception as error:  # noqa: BLE001 - nothing here may disturb the program
            failed(error)
        jaxs = before if callable(before) else state.get_global()
        if jaxs is not None:
            jaxs(function, args, kwargs, results)

    before = state.swap_local(called)

    def end() -> None:
        if state.get_local() is called:
            state.set_local(before)

    return end
