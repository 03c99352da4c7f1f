"""The rows of a hover about targets."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.features.kernels.launches import launch_figure
from jaxsight.features.kernels.summary import how, temporary_memory
from jaxsight.queries.programs.compile_result import Result
from jaxsight.text.markdown import escaped, prose
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.workers.compilation.compilers import Trouble


def target_rows(results: Sequence[Result]) -> str:
    """Return a Markdown table with a row for each target, for a hover."""
    rows = ["| target | kernels | launches | temporaries | compiled |", "|---|---|---|---|---|"]
    troubles = []
    for result in results:
        match result.outcome:
            case Compiled() as compiled:
                graph = compiled.graph
                rows.append(
                    f"| {escaped(_name(compiled, result))} | {graph.kernel_count} | "
                    f"{launch_figure(graph)} | "
                    f"{temporary_memory(compiled)}{_scope(compiled)} | {how(compiled)} |"
                )
            case Trouble(message=message):
                troubles.append(f"**{escaped(result.target.name)}**: {prose(message)}")
    parts = ["\n".join(rows)] if len(rows) > 2 else []
    return "\n\n".join([*parts, *troubles])


def _name(compiled: Compiled, result: Result) -> str:
    """Return the target's name, with the number of devices if the name does not have it."""
    name = result.target.name
    if compiled.devices in (1, result.target.devices):
        return name
    return f"{compiled.devices} × {name}"


def _scope(compiled: Compiled) -> str:
    return " per device" if compiled.devices > 1 else ""
