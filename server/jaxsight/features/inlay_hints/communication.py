"""Collectives, and transfers between host and device, at the end of the lines that they are for."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import line_hints, of_views
from jaxsight.features.model import Hint
from jaxsight.figures import collectives, host_transfers
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.text.markdown import escaped, prose

_DESCRIBED = 5
"""Number of collectives or transfers that a tooltip describes: each takes several lines."""


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the hints of all functions: those of collectives, and those of transfers."""

    def of_collectives(kernels: LocatedFigures) -> Iterator[Hint]:
        every, graph = kernels.graph.kernels, kernels.graph

        def described(index: int) -> str:
            title, *facts = collectives.described(kernels, index)
            return "\n".join([prose(title), "", *(f"* {prose(fact)}" for fact in facts)])

        return line_hints(
            shown,
            kernels,
            collectives.SIGN,
            [
                (collectives.place(kernels, kernel), index)
                for index, kernel in enumerate(every)
                if kernel.collective is not None
            ],
            lambda indices: collectives.summed((every[index] for index in indices), graph),
            described,
            _DESCRIBED,
            escaped(f"{kernels.compiled.devices} devices of {kernels.target.title}"),
        )

    def of_transfers(kernels: LocatedFigures) -> Iterator[Hint]:
        offloads = kernels.graph.offloads
        return line_hints(
            shown,
            kernels,
            host_transfers.SIGN,
            [(host_transfers.place(kernels, transfer), transfer) for transfer in offloads],
            lambda transfers: host_transfers.summed(kernels.graph, transfers),
            lambda transfer: prose(host_transfers.sentence(kernels, transfer)),
            _DESCRIBED,
            escaped(kernels.target.title),
        )

    yield from of_views(shown, of_collectives)
    yield from of_views(shown, of_transfers)


KIND = HintKind(("collectives",), hints, needs_kernels=True)
