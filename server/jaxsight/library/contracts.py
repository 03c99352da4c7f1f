"""`jaxsight.expect`: limits of a function's kernels, launches and memory, for tests."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from jaxsight.figures.metrics import metric_of
from jaxsight.library.compiling import CannotCompile
from jaxsight.library.kernels import Kernels
from jaxsight.library.kernels import kernels as kernels_of
from jaxsight.text import units


class ContractBroken(AssertionError):
    """A figure exceeds its limit in `expect`; the message has the figures and the kernels."""


def expect(
    fn: Callable[..., object],
    *,
    target: str | None = None,
    kernels: int | None = None,
    launches: int | None = None,
    temp: int | str | None = None,
    folded: int | str | None = None,
    collectives: int | None = None,
    moved: int | str | None = None,
    host_moved: int | str | None = None,
) -> Callable[..., Kernels]:
    """Return a function that compiles `fn` and checks limits, for tests.

    `jaxsight.expect(loss, target="cuda:h100", kernels=3, temp="4 MiB")(params, x)` raises an error
    if `loss` exceeds a limit.

    Args:
        target: as for `kernels`.
        kernels: limit of the number of kernels.
        launches: limit of the number of launches.
        temp: limit of temporary memory, in bytes or as `"4 MiB"`.
        folded: limit of folded constants, in bytes or as `"4 MiB"`.
        collectives: limit of the number of collectives.
        moved: limit of the bytes that collectives move on one device, in bytes or as `"64 MiB"`.
        host_moved: limit of the bytes that are moved between host and device, without those of
            callbacks, in bytes or as `"64 MiB"`.

    Returns:
        A function that takes the arguments of `fn` and returns its `Kernels`.

    Raises:
        ContractBroken: (when called) a figure exceeds its limit.
        CannotCompile: (when called) the function cannot be compiled as it is.
    """
    limits = {
        "kernels": kernels,
        "launches": launches,
        "temp": _bytes(temp),
        "folded": _bytes(folded),
        "collectives": collectives,
        "moved": _bytes(moved),
        "host_moved": _bytes(host_moved),
    }
    make = kernels_of(fn, target=target)

    @functools.wraps(fn, updated=())
    def checked(*args: object, **kwargs: object) -> Kernels:
        kernels = make(*args, **kwargs)
        _check(kernels, {name: limit for name, limit in limits.items() if limit is not None})
        return kernels

    return checked


def _check(kernels: Kernels, limits: Mapping[str, int]) -> None:
    """Raise unless a function's figures are within limits."""
    figures = kernels.with_temporaries if "temp" in limits else kernels.figures
    if figures.is_unfolded:
        why = figures.compiled.notes[-1]
        raise CannotCompile(f"{kernels.function} cannot be checked: {why}")
    wrong = []
    for name, limit in limits.items():
        metric = metric_of(figures, name.replace("_", "-"))
        if metric.most < 0:
            raise CannotCompile(f"{kernels.function} cannot be checked: {metric.unknown_because}")
        per_device = " per device" if kernels.devices > 1 and name in _AMOUNTS else ""
        if metric.most > limit:
            wrong.append(f"{name} is {metric.most:,}{per_device}, at most {limit:,} expected")
    if wrong:
        raise ContractBroken("; ".join(wrong) + f"\n\n{kernels}")


_AMOUNTS = ("temp", "folded", "moved", "host_moved")


def _bytes(amount: int | str | None) -> int | None:
    if not isinstance(amount, str):
        return amount
    size = units.parse_size(amount)
    if size is None:
        raise ValueError(
            f"invalid amount of memory {amount!r}: expected a number of bytes, or e.g. '4 MiB'"
        )
    return int(size)
