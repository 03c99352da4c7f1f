"""All figures of a function's kernels as JSON, for the command line."""

from __future__ import annotations

from jaxsight.figures import host_transfers, program_notes
from jaxsight.figures.figures import AnyFigures
from jaxsight.targets import communication
from jaxsight.targets.roofline import bounds, estimate, together, total
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.meshes import Chosen


def fields(value: object, names: str) -> dict[str, object]:
    """Return attributes of an object as JSON, each under its own name."""
    return {name: _plain(getattr(value, name)) for name in names.split()}


def _plain(value: object) -> object:
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def record(kernels: AnyFigures, function: str) -> dict[str, object]:
    """Return all figures as JSON.

    Those of a program for several devices are figures of one of them (`per_device`).
    Sizes are in bytes and times in seconds; `estimate_seconds` is a roofline estimate, not a
    measurement, and the time of a scatter is between it and `estimate_seconds_at_most`.

    Raises:
        Incomplete: the compile ended before memory was known.
    """
    compiled, graph = kernels.compiled, kernels.graph
    sizes = compiled.memory
    meshes = [  # `devices` are the program's devices in the mesh's order
        {"axes": dict(mesh.axes), "devices": list(mesh.devices or range(mesh.size))}
        for mesh in kernels.meshes
    ]
    return {
        "function": function,
        "target": kernels.target.name,
        "devices": compiled.devices,
        "per_device": compiled.devices > 1,
        "meshes": meshes,
        "compiled": compiled.how,
        "jaxlib": compiled.jaxlib,
        **fields(graph, "kernel_count kernels_at_most"),
        **fields(graph, "launch_count launches_at_least launches_at_most launches_known"),
        "temp_bytes": compiled.temporaries,
        "temp_bytes_at_most": most if (most := compiled.temporaries_at_most) >= 0 else None,
        "argument_bytes": sizes.arguments,
        "output_bytes": sizes.outputs,
        "code_bytes": sizes.code,
        "aliased_bytes": sizes.aliased,
        **fields(graph, "folded_bytes constant_bytes"),
        "donations": [{"input": d.name, "result": d.result or None} for d in kernels.donations],
        "flops": compiled.flops,
        "transfers": graph.transfers,
        **_host(kernels),
        **_communication(kernels),
        "callback_count": graph.callback_count,
        "trace_seconds": kernels.trace_seconds,
        "lower_seconds": kernels.lowered.seconds,
        "compile_seconds": compiled.compile_seconds,
        "equation_count": len(kernels.equations),
        "equations_by_line": [
            {"line": line, "equations": number}
            for line, number in program_notes.equations_by_line(kernels).most_common()
        ],
        **_parts(kernels),
        "notes": [*compiled.notes, *graph.notes],
    }


def _parts(kernels: AnyFigures) -> dict[str, object]:
    """Return the seconds of one run, and the kernels, loops and temporaries of it."""
    graph, found = kernels.graph, total(kernels.graph, kernels.target)
    return {
        "estimate_seconds": found.seconds if found else None,
        "estimate_seconds_at_most": found.at_most if found else None,
        "estimate_is_lower_bound": found.is_lower_bound if found else None,
        "kernels": [kernel_record(kernels, kernel) for kernel in graph.kernels],
        "loops": [
            {
                **fields(loop, "name trips waits parent equation"),
                "iteration_device_seconds": on_device,
                "iteration_host_seconds": on_host,
            }
            for loop, (on_device, on_host) in zip(
                graph.loops, program_notes.costs(kernels), strict=True
            )
        ],
        "temporaries": [
            {
                "type": temporary.value.text,
                "bytes": temporary.value.bytes,
                "producer": temporary.producer,
                "consumers": list(temporary.consumers),
            }
            for temporary in graph.temporaries
        ],
    }


def _communication(kernels: AnyFigures) -> dict[str, object]:
    """Return what devices send to each other, and how values are divided over them."""
    graph = kernels.graph
    return {
        "collectives": [
            {
                "kernel": kernel.name,
                **fields(collective, "kind bytes groups axes"),
                "lines": kernels.lines(kernel) or kernels.fed_lines(kernel),
                "estimate_seconds": estimate(kernel, kernels.target),
                "inserted": collective.inserted,
                "async": collective.is_async,
                "reduction": collective.reduction or None,
                "runs": kernel.runs,
            }
            for kernel in graph.collectives
            if (collective := kernel.collective) is not None
        ],
        "moved_bytes": graph.moved_bytes,
        "moved_bytes_at_least": graph.moved_at_least,
        "moved_bytes_known": graph.moved_known,
        "communication_seconds": together(graph.collectives, kernels.target),
        "shardings": {
            "arguments": [_sharding(name, chosen) for name, chosen in kernels.argument_shardings],
            "results": [_sharding(name, chosen) for name, chosen in kernels.result_shardings],
        },
        "rematerialized": [
            {
                **fields(value, "type source target"),
                "lines": kernels.lines_of((value.equation,)),
            }
            for value in kernels.compiled.rematerialized
        ],
    }


def kernel_record(kernels: AnyFigures, kernel: Kernel) -> dict[str, object]:
    """Return a kernel as JSON; see `record`."""
    seconds, undecided = bounds(kernel, kernels.target), kernel.undecided
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "what": kernel.title,
        "ends_because": kernels.reason(kernel),
        "module": list(kernels.scope(kernel)),
        "equations": list(kernel.equations),
        "lines": kernels.lines(kernel),
        "feeds": list(kernel.feeds),
        "feeds_lines": kernels.fed_lines(kernel),
        **fields(kernel, "launches launches_at_most loops bytes_in bytes_out"),
        "workspace_bytes": kernel.workspace,
        "flops": kernel.flops,
        "estimate_seconds": seconds.least if seconds else None,
        "estimate_seconds_at_most": seconds.most if seconds else None,
        "recomputes": list(kernel.recomputes),
        "undecided": {
            "library": undecided.library,
            "kernels_at_most": undecided.kernels,
            "workspace_bytes": undecided.workspace,
            "buffer_bytes": undecided.buffers,
        }
        if undecided
        else None,
    }


def _sharding(name: str, chosen: Chosen) -> dict[str, object]:
    """Return a sharding; `spec` has the mesh axes of each dimension, major to minor."""
    return {"name": name, **fields(chosen, "type spec unreduced")}


def _host(kernels: AnyFigures) -> dict[str, object]:
    """Return the figures as JSON; sizes in bytes, `least_seconds` at the rate of the link."""
    graph = kernels.graph
    link = communication.link(kernels.target)
    memory = kernels.compiled.memory.host
    return {
        "host_transfers": [
            {
                **fields(transfer, "name direction what type bytes runs"),
                "async": transfer.is_async,
                "least_seconds": communication.least_seconds(transfer, kernels.target),
                "kernel": transfer.kernel,
                "equations": list(transfer.equations),
                "lines": host_transfers.lines_of(kernels, transfer),
            }
            for transfer in graph.host_transfers
        ],
        "host_bytes": graph.host_bytes(graph.host_transfers),
        "host_bytes_at_least": graph.host_bytes_at_least(graph.host_transfers),
        "host_bytes_known": graph.host_bytes_known,
        "host_link": None if link is None else fields(link, "name bandwidth"),
        "host_temp_bytes": memory.temporaries,
        "host_argument_bytes": memory.arguments,
        "host_output_bytes": memory.outputs,
        "host_aliased_bytes": memory.aliased,
    }
