"""A sweep as it is compiled, written by hand: for tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxsight.sweeps.points import LargestSize, Sweep, SweepPoint, SweptSize

KIB = 2**10


def point(
    n: int, temporaries: int, *, kernels: int = 2, program: str = "mul", **others: int
) -> SweepPoint:
    return SweepPoint(
        {"n": n, **others},
        kernel_count=kernels,
        kernels_at_most=kernels,
        launch_count=kernels,
        launches_at_most=kernels,
        temp_bytes=temporaries,
        temp_bytes_at_most=temporaries,
        argument_bytes=4 * n,
        output_bytes=4 * n,
        aliased_bytes=0,
        traffic_bytes=12 * n,
        moved_bytes=0,
        estimate_seconds=n * 1e-6,
        estimate_is_lower_bound=False,
        kinds=("loop fusion",) * (kernels - 1) + ("cuBLAS matmul",),
        program=(program,),
    )


def sweep_of(
    temporaries: Callable[[int], int],
    values: Sequence[int] = (1, 2, 3, 4),
    *,
    function: str = "loop",
    largest: tuple[LargestSize, ...] = (),
) -> Sweep:
    """A sweep of `n`, whose program has a kernel more from `n = 4` on."""
    points = tuple(point(n, temporaries(n), kernels=2 if n < 4 else 3) for n in values)
    return Sweep(function, "cuda:h100", (SweptSize("n", tuple(values)),), points, largest)
