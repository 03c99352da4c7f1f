"""All figures of a function's kernels as JSON, for the command line."""

from __future__ import annotations

from jaxsight.features import caveats
from jaxsight.queries.programs.kernels import Kernels, folded
from jaxsight.targets.roofline import estimate, total
from jaxsight.wire.kernel_graph import Collective, Kernel, Loop, Temporary
from jaxsight.wire.messages.replies import Traced


def record(kernels: Kernels, function: str) -> dict[str, object]:
    """Return all figures as JSON.

    Those of a program for several devices are figures of one of them.
    Sizes are in bytes and times in seconds; `estimate_seconds` is a roofline estimate, not a
    measurement.

    Raises:
        Incomplete: the compile ended before memory was known.
    """
    compiled, graph = kernels.compiled, kernels.graph
    sizes = compiled.memory
    estimated = total(graph, kernels.target)
    reply = kernels.view.answer.reply
    return {
        "function": function,
        "updates": list(reply.updates) if isinstance(reply, Traced) else [],
        "target": kernels.target.name,
        "devices": compiled.devices,
        "compiled": compiled.how,
        "jaxlib": compiled.jaxlib,
        "kernel_count": graph.kernel_count,
        "launch_count": graph.launch_count,
        "launches_at_least": graph.launches_at_least,
        "launches_known": graph.launches_known,
        "temp_bytes": sizes.temporaries,
        "argument_bytes": sizes.arguments,
        "output_bytes": sizes.outputs,
        "code_bytes": sizes.code,
        "aliased_bytes": sizes.aliased,
        "folded_bytes": folded(compiled),
        "constant_bytes": sum(constant.value.bytes for constant in graph.constants),
        "donations": [
            {"input": donation.name, "result": donation.result or None}
            for donation in kernels.donations
        ],
        "flops": compiled.flops,
        "transfers": graph.transfers,
        "collectives": [
            _collective(kernels, kernel, kernel.collective)
            for kernel in graph.kernels
            if kernel.collective is not None
        ],
        "callback_count": graph.callback_count,
        "compile_seconds": compiled.compile_seconds,
        "estimate_seconds": estimated.seconds if estimated else None,
        "estimate_is_lower_bound": estimated.is_lower_bound if estimated else None,
        "kernels": [_kernel(kernels, kernel) for kernel in graph.kernels],
        "loops": [_loop(loop) for loop in graph.loops],
        "temporaries": [_temporary(temporary) for temporary in graph.temporaries],
        "notes": [*compiled.notes, *graph.notes],
        **caveats.record(kernels.view.caveats),
    }


def _kernel(kernels: Kernels, kernel: Kernel) -> dict[str, object]:
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "what": kernel.what,
        "ends_because": kernels.reason(kernel),
        "equations": list(kernel.equations),
        "lines": kernels.lines(kernel),
        "feeds": list(kernel.feeds),
        "feeds_lines": kernels.fed_lines(kernel),
        "launches": kernel.launches,
        "loops": list(kernel.loops),
        "bytes_in": kernel.bytes_in,
        "bytes_out": kernel.bytes_out,
        "workspace_bytes": kernel.workspace,
        "flops": kernel.flops,
        "estimate_seconds": estimate(kernel, kernels.target),
        "recomputes": list(kernel.recomputes),
    }


def _collective(kernels: Kernels, kernel: Kernel, collective: Collective) -> dict[str, object]:
    return {
        "kernel": kernel.name,
        "kind": collective.kind,
        "bytes": collective.bytes,
        "groups": [list(group) for group in collective.groups],
        "axes": list(collective.axes),
        "lines": kernels.lines(kernel) or kernels.fed_lines(kernel),
        "inserted": collective.inserted,
        "async": collective.is_async,
        "reduction": collective.reduction or None,
        "runs": kernel.runs,
    }


def _loop(loop: Loop) -> dict[str, object]:
    return {
        "name": loop.name,
        "trips": loop.trips,
        "waits": loop.waits,
        "parent": loop.parent,
        "equation": loop.equation,
    }


def _temporary(temporary: Temporary) -> dict[str, object]:
    return {
        "type": temporary.value.text,
        "bytes": temporary.value.bytes,
        "producer": temporary.producer,
        "consumers": list(temporary.consumers),
    }
