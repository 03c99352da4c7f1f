"""JX409: the peak memory of a function, and the lines whose temporaries make it."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import most_temporaries
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import quoted
from jaxsight.text.units import MIB, size
from jaxsight.wire.kernel_graph import Graph, Kernel

RULE = Rule(__name__, "Temporaries determine the peak memory.", severity="information")
LARGE = 64 * MIB
"""Bytes of temporaries from which they are reported, 0.4 % of a device's 16 GiB. A choice: lower
reports what fits anywhere, higher misses functions that a batch multiplies."""
_NAMED = 3
"""Temporaries that the notes name."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield one finding, at the largest temporary, if temporaries take much.

    They do if they take 64 MiB or more, and as much as the inputs and outputs or more.
    """
    graph = view.on_target.graph
    if most_temporaries(graph) < LARGE:
        return
    least, most = view.on_target.temporaries, view.on_target.temporaries_at_most
    temporaries, more = max(least, most), most - least
    fixed = graph.fixed_bytes
    if temporaries < max(LARGE, fixed):
        return
    places: dict[str, int] = {}
    spans: set[object] = set()
    for bytes_of, at in _largest(graph):
        if at in view.flow.steps and view.quote(at):
            span = view.flow.steps[at].span or view.quote(at)
            if span not in spans:
                spans.add(span)
                places[at] = bytes_of
    named = list(places.items())[:_NAMED]
    if not named:
        return
    total = temporaries + fixed
    bound = "up to " if more > 0 else "at least " if more < 0 else ""
    tuned = f"up to {size(more)} of it depends on the device" if more > 0 else ""
    yield Violation(
        f"peak memory is {bound}{size(total)}, {size(temporaries)} of it temporaries",
        named[0][0],
        help="chunk the work with `jax.lax.map` or `jax.lax.scan`, or rematerialize with "
        "`jax.checkpoint`",
        notes=(
            f"inputs and outputs take {size(fixed)}",
            *filter(None, [tuned]),
            *(f"{quoted(view.quote(at))} takes {size(count)}" for at, count in named),
        ),
        related=tuple((at, f"{size(count)} here") for at, count in named[1:]),
    )


def _largest(graph: Graph) -> list[tuple[int, str]]:
    """Return the sizes of temporaries and of libraries' scratch memory with their equations.

    The largest come first.
    """
    kernels = graph.kernels
    places = [(kernel.workspace, kernel.ends_at or _last(kernel)) for kernel in kernels]
    for temporary in graph.temporaries:
        at = temporary.equation
        if not at and temporary.producer < len(kernels):
            producer = kernels[temporary.producer]
            at = producer.ends_at or _last(producer)
        places.append((temporary.value.bytes, at))
    return sorted(filter(all, places), key=lambda place: -place[0])


def _last(kernel: Kernel) -> str:
    return kernel.equations[-1] if kernel.equations else ""
