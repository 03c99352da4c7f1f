"""Transfers between the host and the device in words: how much, over which link, how long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jaxsight.figures.collectives import runs
from jaxsight.figures.figures import AnyFigures, At, Figures
from jaxsight.figures.summary import moved_to_host
from jaxsight.targets import communication
from jaxsight.text import units
from jaxsight.text.units import count
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.kernel_work import TO_DEVICE, TO_HOST, WITHIN_HOST, HostTransfer

SIGN = "⇅"

COLUMNS = ("host transfer", "bytes", "≥ time", "", "lines")
"""The titles of `rows`."""


def lines(kernels: AnyFigures) -> Iterator[str]:
    """Yield `to host: 2 transfers, 512 MiB, ≥ 8.5 ms over PCIe 5 ×16 (63 GB/s), 1 overlapped`.

    One line for each direction, and one for the memory on the host.
    """
    graph = kernels.graph
    for direction in (TO_HOST, TO_DEVICE, WITHIN_HOST):
        if transfers := [each for each in graph.host_transfers if each.direction == direction]:
            parts = [count(len(transfers), "transfer"), moved_to_host(graph, transfers)]
            parts += [*_time(kernels, transfers), _overlap(transfers)]
            yield f"{direction}: {', '.join(parts)}"
    memory = kernels.compiled.memory.host
    amounts = {name: getattr(memory, name) for name in ("arguments", "outputs", "temporaries")}
    parts = [f"{units.size(amount)} {name}" for name, amount in amounts.items() if amount > 0]
    reused = f" ({units.size(memory.aliased)} donated)" if memory.aliased > 0 else ""
    if parts:
        yield f"host memory: {', '.join(parts)}{reused}"


def text(transfer: HostTransfer) -> str:
    """Return `to host f32[512,512] 1 MiB, 8 times`."""
    times = f", {transfer.runs} times" if transfer.runs > 1 else ""
    return f"{transfer.direction} {transfer.type} {units.size(transfer.bytes)}{times}"


def summed(graph: Graph, transfers: Iterable[HostTransfer]) -> list[str]:
    """Return `to host 2 MiB × 8` for each direction and number of runs: bytes of one iteration."""
    amounts: dict[tuple[str, str], int] = {}
    for transfer in transfers:
        key = transfer.direction, runs(transfer, graph)
        amounts[key] = amounts.get(key, 0) + transfer.bytes
    return [f"{where} {units.size(bytes)}{times}" for (where, times), bytes in amounts.items()]


def sentence(kernels: AnyFigures, transfer: HostTransfer) -> str:
    """Return all that is known of a transfer: its data, time, and whether kernels run meanwhile."""
    said = f"{transfer.what} {text(transfer)}"
    parts = [said, *_time(kernels, [transfer]), _overlap([transfer])]
    return f"{SIGN} {', '.join(parts)}"


def rows(kernels: AnyFigures) -> list[Sequence[str]]:
    """Return a row for each transfer, as in `COLUMNS`."""
    return [
        (
            f"{transfer.direction} {transfer.what} of {transfer.type}",
            f"{units.size(transfer.bytes)}{runs(transfer, kernels.graph)}",
            _least(kernels, [transfer]) or "?",
            "overlapped" if transfer.is_async else "",
            where(kernels, transfer),
        )
        for transfer in kernels.graph.host_transfers
    ]


def largest(kernels: AnyFigures, most: int) -> Iterator[str]:
    """Yield `to host f32[512,512] 1 MiB, 8 times at line 12` for the largest transfers."""
    graph = kernels.graph
    by_size = sorted(graph.offloads, key=lambda each: each.runs * each.bytes, reverse=True)
    for transfer in by_size[:most]:
        at = lines_of(kernels, transfer)
        yield f"{text(transfer)}{f' at line {at[0]}' if at else ''}"
    if len(by_size) > most:
        yield f"and {len(by_size) - most} more"


def where(kernels: AnyFigures, transfer: HostTransfer) -> str:
    """Return the lines of a transfer (`9, 10`), or those of the nearest kernels (`for 12`)."""
    listed = ", ".join(map(str, lines_of(kernels, transfer)))
    return f"for {listed}" if listed and not _own(kernels, transfer) else listed


def paths(kernels: AnyFigures, transfer: HostTransfer) -> tuple[str, ...]:
    """Return the equations of a transfer, or else those of the nearest kernels."""
    return _own(kernels, transfer) or transfer.feeds


def place(kernels: Figures[At], transfer: HostTransfer) -> At | None:
    """Return where a transfer is shown: at the first of its equations that has a place."""
    places = map(kernels.place, paths(kernels, transfer))
    return next((at for at in places if at is not None), None)


def lines_of(kernels: AnyFigures, transfer: HostTransfer) -> list[int]:
    return kernels.lines_of(paths(kernels, transfer))


def _own(kernels: AnyFigures, transfer: HostTransfer) -> tuple[str, ...]:
    """Return the equations of a transfer.

    XLA drops those of `device_put` (`HostOffloader` removes their custom calls): a transfer without
    one belongs to the only `device_put` with its type and direction, if no other has both.
    """
    if transfer.equations:
        return transfer.equations
    kind = (transfer.direction, transfer.type)
    alike = [
        each
        for each in kernels.graph.offloads
        if not each.equations and (each.direction, each.type) == kind
    ]
    on_host = transfer.direction == TO_HOST
    written = [
        path
        for path, equation in kernels.equations.items()
        if equation.primitive == "device_put"
        and any(
            ("<host>" in output) == on_host and output.replace("<host>", "") == transfer.type
            for output in equation.outputs
        )
    ]
    return tuple(written) if len(alike) == len(written) == 1 else ()


def _time(kernels: AnyFigures, transfers: Sequence[HostTransfer]) -> list[str]:
    """Return `≥ 8.5 ms over PCIe 5 ×16 (63 GB/s)`; nothing for devices without a known link."""
    link, least = communication.link(kernels.target), _least(kernels, transfers)
    if link is None or not least:
        return []
    return [f"≥ {least} over {link.name} ({link.bandwidth / 1e9:.4g} GB/s)"]


def _least(kernels: AnyFigures, transfers: Sequence[HostTransfer]) -> str:
    """Return the least time of transfers in words; empty if unknown."""
    times = [communication.least_seconds(each, kernels.target) for each in transfers]
    known = [seconds for seconds in times if seconds is not None]
    return units.time(sum(known)) if known and len(known) == len(times) else ""


def _overlap(transfers: Sequence[HostTransfer]) -> str:
    if not (overlapped := sum(each.is_async for each in transfers)):
        return "not overlapped"
    part = "all " if overlapped == len(transfers) else f"{overlapped} "
    return f"{part if len(transfers) > 1 else ''}overlapped with kernels"
