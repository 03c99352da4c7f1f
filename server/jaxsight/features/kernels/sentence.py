"""One kernel in a sentence."""

from __future__ import annotations

from jaxsight.features.distributed import collectives
from jaxsight.features.kernels.launches import launches_of
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.text import units
from jaxsight.wire.kernel_graph import Kernel


def sentence(kernels: Kernels, index: int, kernel: Kernel) -> str:
    on = " on each device" if kernels.compiled.devices > 1 else ""
    flow = f"{units.size(kernel.bytes_in)} in, {units.size(kernel.bytes_out)} out{on}"
    figure = launches_of(kernel)
    times = f", launched {figure} times" if figure != "1" else ""
    if kernel.launches == 0:
        times = ", never launched as the number of iterations is known"
    feeding = f" {purpose}" if (purpose := kernels.feeding(kernel)) else ""
    if kernel.collective is not None:
        title, reason, *_ = collectives.described(kernels, index)
        return f"{collectives.SIGN} {title}; {reason}; {collectives.time(kernels, kernel)}"
    return (
        f"kernel {index + 1}: {kernel.title}{feeding}{times}, {flow}; fusion boundary: "
        f"{kernels.reason(kernel)}"
    )
