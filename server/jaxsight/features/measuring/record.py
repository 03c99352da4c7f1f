"""A measurement as JSON, for the command line and for clients."""

from __future__ import annotations

from dataclasses import asdict

from jaxsight.features.measuring.shown import MatchedTimes
from jaxsight.wire.messages.measuring import MeasuredRatio, ProgramTimes


def record(found: MatchedTimes, function: str) -> dict[str, object]:
    """Return all figures of a measurement as JSON.

    Times are in seconds of one run, `kernels` the dearest first. `estimate_seconds` is a roofline
    estimate. What the device ran besides the kernels of the graph has `kernel` `null`.
    """
    measurement = found.measurement
    return {
        "function": function,
        "target": measurement.target.name,
        **times_record(measurement.times),
        "estimate_seconds": found.estimate_seconds,
        "trace_seconds": measurement.trace_seconds,
        "kernel_count": found.kernels.graph.kernel_count,
        "kernels": [
            {
                "name": row.name,
                "kernel": row.index,
                "calls": row.calls,
                "seconds": row.seconds,
                "share": row.share,
                "estimate_seconds": row.estimate_seconds,
                "ratio": row.ratio,
                "lines": list(row.lines),
                "bytes_per_second": row.bytes_per_second,
                "flops_per_second": row.flops_per_second,
                "arithmetic_share": row.arithmetic_share,
                "bandwidth_share": row.bandwidth_share,
            }
            for row in found.rows
        ],
        "unmatched_seconds": found.unmatched_seconds,
        "device": {
            "kind": measurement.conditions.device_kind,
            "platform": measurement.conditions.platform,
        },
        "jax": measurement.conditions.jax,
        "jaxlib": measurement.conditions.jaxlib,
        "noise": {
            "cores": measurement.conditions.cores,
            "load": _known(measurement.conditions.load),
            "other_cores": _known(measurement.conditions.others),
            "busy": measurement.conditions.is_busy,
            "governor": measurement.conditions.governor or None,
            "clock_seconds": measurement.conditions.clock_seconds,
            "waited_seconds": measurement.conditions.waited_seconds,
        },
        "command_buffers": measurement.conditions.command_buffers,
    }


def ratio_record(ratio: MeasuredRatio) -> dict[str, float]:
    """Return how much longer the other function takes, with an interval of 95 %."""
    return asdict(ratio)


def times_record(times: ProgramTimes) -> dict[str, object]:
    """Return the times of a program as JSON, without its kernels."""
    wall = times.wall
    return {
        "wall_seconds": wall.median,
        "wall_seconds_quartiles": [wall.quartile1, wall.quartile3],
        "wall_seconds_interval": [wall.low, wall.high],
        "wall_seconds_least": wall.least,
        "runs": wall.runs,
        "first_seconds": times.first_seconds,
        "device_seconds": _known(times.device_seconds),
        "host_seconds_between_kernels": _known(times.between_seconds),
        "host_seconds_around_kernels": _known(times.host_seconds),
        "transfers": list(map(asdict, times.transfers)),
        "profiled_runs": times.profiled_runs,
        "profile_problem": times.profile_problem or None,
        "lower_seconds": times.lower_seconds,
        "compile_seconds": times.compile_seconds,
        "peak_bytes": None if times.peak_bytes < 0 else times.peak_bytes,
        "random_arguments": list(times.drawn),
    }


def _known(seconds: float) -> float | None:
    return None if seconds < 0 else seconds
